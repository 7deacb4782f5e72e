"""Tier3: the questions that turned right or wrong, with their candidates and log-probabilities."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.files import open_regular
from evaluation.grading.accuracy import Groups, candidate_scores, group_items
from evaluation.grading.spread import Floats
from evaluation.prefill.caches import EXAMPLES
from evaluation.reporting.flips.moved import GONE, Flip, Moved, Turned, rounded, scored_cache
from evaluation.results.columns import CANDIDATES, read_table, rows_of
from evaluation.results.items import AGAIN, candidate_credits
from evaluation.results.read import TierResults
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName

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
    """Where a task's questions stand in their file, and where their own text begins."""

    path: Path
    offsets: dict[str, int]
    begin: int


class QuestionTexts:
    """Finds questions by id; keeps where they stand, not their texts, as there may be many."""

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._known: dict[str, Index | None] = {}

    def read(self, task: str, checksum: Any, ids: list[str]) -> dict[str, dict[str, Any]]:
        """Text and candidates of each question; those whose cache is gone are absent."""
        if task not in self._known:
            folder = self._plan.task_folder(task)
            is_there = scored_cache(folder, checksum) is not None
            self._known[task] = _known_index(folder / EXAMPLES) if is_there else None
        index = self._known[task]
        if index is None:
            return {}
        try:
            return _texts(index, set(ids) & set(index.offsets))
        except BROKEN as error:
            _warn(index.path, error)
            return {}


BROKEN = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)
"""What a damaged file of questions raises."""


def _warn(path: Path, error: Exception) -> None:
    log.warning("%s: damaged (%r); its texts are not shown; prefill again", path, error)


def _texts(index: Index, names: set[str]) -> dict[str, dict[str, Any]]:
    found = {}
    with open_regular(index.path) as file:
        for name in names:
            file.seek(index.offsets[name])
            found[name] = _readable(json.loads(file.readline()), index.begin)
    return found


def _known_index(path: Path) -> Index | None:
    """None where the file is damaged, which is logged: the page says that the texts are gone."""
    try:
        return _index(path)
    except BROKEN as error:
        _warn(path, error)
        return None


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
    """Where questions begin that all have the same solved examples before them.

    `low` and `high` are the first and the last of their texts in order: what these two begin with,
    all between them begin with too.
    """
    if low == high:
        return 0
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    end = low[:same].rfind("\n\n") + 2
    return end if end >= SOLVED else 0


def _readable(row: Mapping[str, Any], begin: int) -> dict[str, Any]:
    contexts = list(dict.fromkeys(part["text"][begin:] for part in row["contexts"]))
    text = "\n—\n".join(contexts)
    if len(text) > LONGEST:
        text = f"… {text[-LONGEST:]}"
    if begin:
        text = f"({begin} characters of solved examples)\n\n{text}"
    answers = [candidate["text"].strip()[:LONGEST] for candidate in row["candidates"]]
    return {"text": text, "answers": answers}


def flipped_questions(
    ours: TierResults, bridge: TierResults, texts: QuestionTexts, most: int
) -> Iterable[Moved]:
    """Questions of each task by its primary metric; those whose margin moved most are shown."""
    paths = [side.folder / side.tier.items_file for side in (ours, bridge)]
    if not all(path.exists() for path in paths):  # an external program wrote none
        return
    tables = [read_table(path, CANDIDATES, AGAIN) for path in paths]
    for name, item in ours.items.items():
        if name in bridge.items:
            sides = [_Side.of(*pair, name) for pair in zip(tables, paths, strict=True)]
            metric = getattr(item.entry, "primary", None) or "raw"
            sizes = [side.groups.sizes for side in sides]
            if sides[0].ids == sides[1].ids and np.array_equal(sizes[0], sizes[1]):
                yield _task(ours.tier.name, name, item.same.get("data"), metric, sides, texts, most)


@dataclass(frozen=True)
class _Side:
    """A task on one side: candidates' scores and questions' credits by every normalization."""

    ids: tuple[str, ...]
    groups: Groups
    gold: Any
    credit: Mapping[str, Floats]
    scores: Mapping[str, Floats]

    @classmethod
    def of(cls, table: pa.Table, path: Path, name: str) -> "_Side":
        credits = candidate_credits(table, name, path)
        rows = rows_of(table, "task", name, path, AGAIN)
        return cls(
            ids=credits["raw"].ids,
            groups=group_items(rows),
            gold=rows["gold"].to_numpy(zero_copy_only=False),
            credit={metric: one.credit for metric, one in credits.items()},
            scores=candidate_scores(rows),
        )


def _task(
    tier: TierName,
    name: str,
    data: Any,
    metric: str,
    sides: list[_Side],
    texts: QuestionTexts,
    most: int,
) -> Moved:
    left, right = sides
    groups, gold = left.groups, left.gold
    change = left.credit[metric] - right.credit[metric]
    moved = np.abs(np.subtract(*(_margins(side.scores[metric], gold, groups) for side in sides)))
    chosen: list[tuple[int, Turned]] = []
    turns: tuple[tuple[Turned, int], ...] = (("right", 1), ("wrong", -1))
    for turned, sign in turns:
        found = np.flatnonzero(change * sign > 0)
        found = found[np.argsort(-moved[found], kind="stable")][:most]
        chosen += [(int(i), turned) for i in found]
    known = texts.read(name, data, [left.ids[i] for i, _ in chosen])
    shown = []
    for i, turned in chosen:
        rows = slice(groups.starts[i], groups.starts[i] + groups.sizes[i])
        both = [_scores(side.scores, metric, rows) for side in sides]
        asked = known.get(left.ids[i], {"text": GONE, "answers": []})
        shared = {**asked, "gold": int(np.argmax(gold[rows])), "theirs": both[1]}
        shown.append(Flip(id=left.ids[i], turned=turned, shared=shared, ours=both[0]))
    return Moved(
        shape="choices",
        tier=tier,
        item=name,
        of=len(change),
        gained=int((change > 0).sum()),
        lost=int((change < 0).sum()),
        shown=shown,
        label=LABELS[metric],
    )


def _margins(scores: Floats, gold: Any, groups: Groups) -> Floats:
    """How far each item's gold candidate is ahead of the best other one; (items,)."""
    others = np.maximum.reduceat(np.where(gold, -np.inf, scores), groups.starts)
    margins: Floats = np.maximum.reduceat(np.where(gold, scores, -np.inf), groups.starts) - others
    return margins


def _scores(scores: Mapping[str, Floats], metric: str, rows: slice) -> list[list[float]]:
    """The candidates' scores as they are ranked, and their log-probs where those are others."""
    kinds = [metric] if metric == "raw" else [metric, "raw"]
    return [[rounded(value) for value in scores[kind][rows]] for kind in kinds]
