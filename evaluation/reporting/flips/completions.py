"""Tier5: prompts whose pass rate moved most, with both sides' answers and what verifiers said."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.files import open_regular
from evaluation.grading.generation_files import FOLDER
from evaluation.reporting.flips.answers import cut
from evaluation.reporting.flips.moved import Flip, Moved, Turned
from evaluation.results.kinds import CreditItem, Credits
from evaluation.results.read import TierResults

log = logging.getLogger(__name__)

RESULTS = "results.jsonl"

GONE = "(not stored)"


def flipped_completions(ours: TierResults, bridge: TierResults, most: int) -> Iterable[Moved]:
    """Prompts of each task, those that moved most first; several samples count by their mean."""
    headline = ours.tier.headline
    for name, item in ours.items.items():
        other = bridge.items.get(name)
        if isinstance(item, CreditItem) and isinstance(other, CreditItem):
            mine, theirs = item.credits.get(headline), other.credits.get(headline)
            if mine is not None and theirs is not None:
                both = mine.without(theirs), theirs.without(mine)
                if both[0].ids == both[1].ids:
                    yield _task(ours, bridge, name, both, most)


def _task(
    ours: TierResults, bridge: TierResults, name: str, sides: tuple[Credits, Credits], most: int
) -> Moved:
    change = sides[0].credit - sides[1].credit
    chosen = [*_largest(change, 1, most), *_largest(change, -1, most)]
    ids = {sides[0].ids[index] for index, _ in chosen}
    said = tuple(_said(one.folder / FOLDER / name / RESULTS, ids) for one in (ours, bridge))
    flips = []
    for index, turned in chosen:
        id = sides[0].ids[index]
        mine, theirs = (
            _side(s.get(id, []), float(c.credit[index])) for s, c in zip(said, sides, strict=True)
        )
        prompt = said[0].get(id) or said[1].get(id)
        text = cut(str(prompt[0]["prompt"]), from_end=True) if prompt else GONE
        flips.append(Flip(id=id, turned=turned, shared={"text": text, "theirs": theirs}, ours=mine))
    return Moved(
        shape="answers",
        tier=ours.tier.name,
        item=name,
        of=len(change),
        gained=int((change > 0).sum()),
        lost=int((change < 0).sum()),
        shown=flips,
    )


def _largest(change: Any, sign: int, most: int) -> Iterator[tuple[int, Turned]]:
    found = np.flatnonzero(change * sign > 0)
    for index in found[np.argsort(-np.abs(change[found]), kind="stable")][:most]:
        yield int(index), "right" if sign > 0 else "wrong"


def _said(path: Path, ids: set[str]) -> Mapping[str, list[dict[str, Any]]]:
    """The samples of some prompts; what cannot be read is left out, and told."""
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        with open_regular(path) as lines:
            for line in lines:
                row = json.loads(line)
                if row["id"] in ids:
                    found.setdefault(row["id"], []).append(row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s: damaged (%r); its texts are not shown; score again", path, error)
    return found


def _side(samples: list[dict[str, Any]], rate: float) -> dict[str, Any]:
    """One side's answer: of several samples, the first that is right, or the first."""
    if not samples:
        return {"text": GONE, "checks": {}, "stop": "", "tokens": 0}
    right = [row for row in samples if any(v["credit"] == 1 for v in row["verdicts"].values())]
    row = (right or samples)[0]
    more = (
        f" (sample {row['sample']}; pass rate {rate:.3g} of {len(samples)})" if samples[1:] else ""
    )
    return {
        "text": cut(row["completion"]) + more,
        "checks": {view: verdict["credit"] == 1 for view, verdict in row["verdicts"].items()},
        "why": [f"{view}: {v['reason']}" for view, v in row["verdicts"].items() if v["reason"]],
        "stop": row["stop_reason"],
        "tokens": row["completion_tokens"],
    }
