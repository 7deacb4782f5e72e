"""Questions (Tier3) that became right or wrong, with their candidates and log-probabilities."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.bridge.pairing import Pair
from evaluation.metrics.accuracy import Groups, candidate_scores, group_items
from evaluation.metrics.measures import margins
from evaluation.metrics.variance import Floats
from evaluation.prefill.caches import EXAMPLES
from evaluation.reporting.flips.items import (
    NOT_CACHED,
    Flip,
    ItemFlips,
    cut,
    largest,
    rounded,
    scored_cache,
)
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

LONGEST = 2000
"""Most characters of a prompt that are shown, from its end, where the question is."""

SOLVED = 200
"""Fewest characters of a beginning shared by all questions that count as solved examples."""

LABELS = {
    "raw": "log-prob",
    "per_char": "log-prob per character",
    "per_byte": "log-prob per byte",
    "per_token": "log-prob per token",
    "pmi": "log-prob minus the unconditional one",
}


Places = tuple[dict[str, int], int]
"""Each question's byte offset in its task's file, and the length of the solved examples before its text."""

BROKEN = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)
"""Exceptions that a damaged file of questions raises."""


class QuestionTexts:
    """Reads questions of a stage by id; keeps only their offsets in memory, as there may be many."""

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._places: dict[str, Places] = {}

    def read(self, task: str, checksum: Any, ids: list[str]) -> dict[str, dict[str, Any]]:
        """Return `text` and `answers` of each question whose cache still has these checksums.

        A damaged file is logged, and gives none.
        """
        folder = self._plan.cache_folder("tier3", task)
        path = folder / EXAMPLES
        try:
            if task not in self._places:
                known = scored_cache(folder, checksum) is not None
                self._places[task] = _places(path) if known else ({}, 0)
            offsets, begin = self._places[task]
            by_id = {}
            if chosen := set(ids) & set(offsets):
                with open(path, "rb") as file:
                    for name in chosen:
                        file.seek(offsets[name])
                        by_id[name] = _readable(json.loads(file.readline()), begin)
            return by_id
        except BROKEN as error:
            log.warning("%s: damaged (%r); its texts are not shown; prefill again", path, error)
            self._places.setdefault(task, ({}, 0))
            return {}


def _places(path: Path) -> Places:
    offsets: dict[str, int] = {}
    at, low, high = 0, "", ""
    with open(path, "rb") as file:
        for line in file:
            row = json.loads(line)
            text = row["contexts"][0]["text"]
            low, high = min(low, text) if offsets else text, max(high, text)
            offsets[row["id"]] = at
            at += len(line)
    return offsets, shared_start(low, high)


def shared_start(low: str, high: str) -> int:
    """Return the length of the solved examples that all questions begin with; 0 if there are none.

    `low` and `high` are the first and the last text in sorted order: all texts between them share
    these two's common beginning.
    """
    if low == high:
        return 0
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    end = low[:same].rfind("\n\n") + 2
    return end if end >= SOLVED else 0


def _readable(row: Mapping[str, Any], begin: int) -> dict[str, Any]:
    contexts = dict.fromkeys(part["text"][begin:] for part in row["contexts"])
    text = cut("\n—\n".join(contexts), from_end=True, most=LONGEST)
    if begin:
        text = f"({begin} characters of solved examples)\n\n{text}"
    answers = [candidate["text"].strip()[:LONGEST] for candidate in row["candidates"]]
    return {"text": text, "answers": answers}


class _Side(NamedTuple):
    """One side's candidates: the scores that rank them and their log-probs, (candidates,) each."""

    groups: Groups
    gold: npt.NDArray[np.bool_]
    shown: list[Floats]
    margins: Floats


def _side(rows: pa.Table, metric: str) -> _Side:
    scores, groups = candidate_scores(rows), group_items(rows)
    gold = rows["gold"].to_numpy(zero_copy_only=False)
    shown = [scores[kind] for kind in dict.fromkeys((metric, "raw"))]
    return _Side(groups, gold, shown, margins(scores[metric], gold, groups))


Tables = tuple[pa.Table | None, pa.Table | None]
"""Both sides' tables of candidates; external programs may write none."""


def flipped_questions(
    pair: Pair, tables: Tables, texts: QuestionTexts, most: int
) -> Iterator[ItemFlips]:
    """Yield the questions that flipped and whose margin changed most, by the primary metric.

    Tasks without scores of each candidate on both sides are left out.

    Args:
        most: Most flips of a task that are shown, in each direction.
    """
    candidates = [
        (side, table) for side, table in zip(pair, tables, strict=True) if table is not None
    ]
    if len(candidates) < len(tables):
        return
    for judged in pair.judged:
        name = judged.item
        ours = pair.ours.items[name]
        metric = getattr(ours.entry, "primary", None) or "raw"
        sides = [_side(side.rows_of(table, name), metric) for side, table in candidates]
        if not np.array_equal(sides[0].groups.sizes, sides[1].groups.sizes):
            continue
        chosen = largest(judged.gain, most, sides[0].margins - sides[1].margins)
        known = texts.read(name, ours.same.get("data"), [judged.ids[place] for place, _ in chosen])
        flips = []
        for place, change in chosen:
            id, start = judged.ids[place], sides[0].groups.starts[place]
            of = slice(start, start + sides[0].groups.sizes[place])
            own, other = ([list(map(rounded, one[of])) for one in side.shown] for side in sides)
            text = known.get(id, {"text": NOT_CACHED, "answers": []})
            shared = {**text, "gold": int(np.argmax(sides[0].gold[of])), "theirs": other}
            flips.append(Flip(id=id, change=change, shared=shared, ours=own))
        yield ItemFlips(
            shape="choices",
            tier=pair.tier.name,
            item=name,
            gain=judged.gain,
            shown=flips,
            label=LABELS[metric],
        )
