"""Questions (Tier3) that became right or wrong, with their candidates and log-probabilities."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.bridge.pairing import Pair
from evaluation.files import open_regular
from evaluation.metrics.accuracy import candidate_scores, group_items
from evaluation.metrics.spread import Floats
from evaluation.prefill.caches import EXAMPLES
from evaluation.reporting.flips.items import (
    GONE,
    Flip,
    ItemFlips,
    cut,
    largest,
    rounded,
    scored_cache,
)
from evaluation.results.columns import CANDIDATES, read_table, rows_of
from evaluation.results.files import SCORE_AGAIN
from evaluation.results.kinds import Credits
from evaluation.results.read import TierResults
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

LONGEST = 2000
"""Characters of a question that are shown, from its end, where it is asked."""

SOLVED = 200
"""Characters that all questions begin with, from which on they are taken for solved examples."""

LABELS = {
    "raw": "log-prob",
    "per_char": "log-prob per character",
    "per_byte": "log-prob per byte",
    "per_token": "log-prob per token",
    "pmi": "log-prob less the unconditional one",
}


@dataclass(frozen=True)
class Index:
    """The places of a task's questions in their file, and where their own text begins."""

    path: Path
    offsets: dict[str, int]
    begin: int


BROKEN = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)
"""What a damaged file of questions raises."""


class QuestionTexts:
    """Questions found by id; only their places are kept, as there may be many."""

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._indices: dict[str, Index | None] = {}

    def read(self, task: str, checksum: Any, ids: list[str]) -> dict[str, dict[str, Any]]:
        """Return text and candidates of each question whose cache is still there.

        A damaged file is logged, and its questions are absent.
        """
        folder = self._plan.task_folder(task)
        try:
            if task not in self._indices:
                self._indices[task] = None
                if scored_cache(folder, checksum) is not None:
                    self._indices[task] = _index(folder / EXAMPLES)
            index = self._indices[task]
            return {} if index is None else _texts(index, set(ids) & set(index.offsets))
        except BROKEN as error:
            path = folder / EXAMPLES
            log.warning("%s: damaged (%r); its texts are not shown; prefill again", path, error)
            return {}


def _texts(index: Index, names: set[str]) -> dict[str, dict[str, Any]]:
    found = {}
    with open_regular(index.path) as file:
        for name in names:
            file.seek(index.offsets[name])
            found[name] = _readable(json.loads(file.readline()), index.begin)
    return found


def _index(path: Path) -> Index:
    offsets: dict[str, int] = {}
    at, low, high = 0, "", ""
    with open_regular(path) as file:
        for line in file:
            row = json.loads(line)
            text = row["contexts"][0]["text"]
            low, high = min(low, text) if offsets else text, max(high, text)
            offsets[row["id"]] = at
            at += len(line)
    return Index(path, offsets, _shared_start(low, high))


def _shared_start(low: str, high: str) -> int:
    """Return where questions begin that all have the same solved examples before them.

    `low` and `high` are the first and the last of their texts in order: what these two begin with,
    all between them begin with too.
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


class QuestionFlips:
    """The questions of each task that flipped against one bridge, by the task's primary metric."""

    def __init__(self, plan: StagePlan, bridge: TierResults, most: int) -> None:
        self._texts, self._bridge, self._most = QuestionTexts(plan), bridge, most
        self._bridge_table = cache(partial(_candidates, bridge))

    def find(self, ours: TierResults) -> Iterator[ItemFlips]:
        """Yield those of each task whose margin changed most."""
        tables = _candidates(ours), self._bridge_table()
        if tables[0] is None or tables[1] is None:
            return
        for name, mine, theirs in Pair(ours, self._bridge).credits():
            metric = getattr(ours.items[name].entry, "primary", None) or "raw"
            sides = _Side(tables[0], ours, name), _Side(tables[1], self._bridge, name)
            if np.array_equal(sides[0].groups.sizes, sides[1].groups.sizes):
                yield self._task(ours, name, metric, (mine, theirs), sides)

    def _task(
        self,
        ours: TierResults,
        name: str,
        metric: str,
        credits: tuple[Credits, Credits],
        sides: "tuple[_Side, _Side]",
    ) -> ItemFlips:
        mine, theirs = credits
        gain = mine.credit - theirs.credit
        change = np.subtract(*(side.margins(metric) for side in sides))
        chosen = largest(gain, self._most, change)
        ids = [mine.ids[place] for place, _ in chosen]
        texts = self._texts.read(name, ours.items[name].same.get("data"), ids)
        flips = []
        for place, turned in chosen:
            own, other = (side.scores_of(place, metric) for side in sides)
            text = texts.get(mine.ids[place], {"text": GONE, "answers": []})
            shared = {**text, "gold": sides[0].gold_of(place), "theirs": other}
            flips.append(Flip(id=mine.ids[place], turned=turned, shared=shared, ours=own))
        return ItemFlips(
            shape="choices",
            tier=ours.tier.name,
            item=name,
            gain=gain,
            shown=flips,
            label=LABELS[metric],
        )


def _candidates(side: TierResults) -> pa.Table | None:
    """Read the log-probabilities of all candidates; None if an external program wrote none."""
    path = side.folder / side.tier.items_file
    return read_table(path, CANDIDATES, SCORE_AGAIN) if path.exists() else None


class _Side:
    """A task on one side: its candidates' scores by every normalization."""

    def __init__(self, table: pa.Table, side: TierResults, name: str) -> None:
        rows = rows_of(table, "task", name, side.folder / side.tier.items_file, SCORE_AGAIN)
        self.groups = group_items(rows)
        self._gold = rows["gold"].to_numpy(zero_copy_only=False)  # (candidates,)
        self._scores = candidate_scores(rows)

    def margins(self, metric: str) -> Floats:
        """Return how far each gold candidate is ahead of the best other one; (questions,)."""
        scores, starts = self._scores[metric], self.groups.starts
        others = np.maximum.reduceat(np.where(self._gold, -np.inf, scores), starts)
        gold: Floats = np.maximum.reduceat(np.where(self._gold, scores, -np.inf), starts)
        return gold - others

    def scores_of(self, question: int, metric: str) -> list[list[float]]:
        """Return its candidates' scores as they are ranked, then their log-probs if these differ."""
        kinds = [metric] if metric == "raw" else [metric, "raw"]
        return [
            [rounded(value) for value in self._scores[kind][self._rows(question)]] for kind in kinds
        ]

    def gold_of(self, question: int) -> int:
        """Return the number of its right candidate."""
        return int(np.argmax(self._gold[self._rows(question)]))

    def _rows(self, question: int) -> slice:
        start = self.groups.starts[question]
        return slice(start, start + self.groups.sizes[question])
