"""Tier3: the questions that turned right or wrong, with their candidates and log-probabilities."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.bridge.outcomes import item_credits
from evaluation.bridge.results import Results, TaskResult
from evaluation.grading.accuracy import Groups, candidate_scores, group_items
from evaluation.grading.spread import Floats
from evaluation.prefill.caches import EXAMPLES
from evaluation.reporting.flips.moved import GONE, Flip, Moved, Turned, rounded, scored_cache
from evaluation.settings.plan import StagePlan

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
            self._known[task] = _index(folder / EXAMPLES) if is_there else None
        index = self._known[task]
        if index is None:
            return {}
        found = {}
        with open(index.path, "rb") as file:
            for name in set(ids) & set(index.offsets):
                file.seek(index.offsets[name])
                found[name] = _readable(json.loads(file.readline()), index.begin)
        return found


def _index(path: Path) -> Index:
    offsets: dict[str, int] = {}
    at, low, high = 0, "", ""
    with open(path, "rb") as file:
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
    ours: Results, bridge: Results, texts: QuestionTexts, most: int
) -> Iterable[Moved]:
    """Questions of each task by its primary metric; those whose margin moved most are shown."""
    for name, mine in ours.tasks.items():
        other = bridge.tasks.get(name)
        if other is not None and mine.candidates is not None and other.candidates is not None:
            yield from _task(name, mine, mine.candidates, other.candidates, texts, most)


def _task(
    name: str,
    task: TaskResult,
    mine: pa.Table,
    other: pa.Table,
    texts: QuestionTexts,
    most: int,
) -> Iterable[Moved]:
    left, right, metric = item_credits(mine), item_credits(other), task.primary or "raw"
    if left.ids != right.ids:
        return
    change = left.credit[metric] - right.credit[metric]
    groups, gold = group_items(mine), mine["gold"].to_numpy(zero_copy_only=False)
    scores = candidate_scores(mine), candidate_scores(other)
    moved = np.abs(np.subtract(*(_margins(side[metric], gold, groups) for side in scores)))
    chosen: list[tuple[int, Turned]] = []
    turns: tuple[tuple[Turned, int], ...] = (("right", 1), ("wrong", -1))
    for turned, sign in turns:
        found = np.flatnonzero(change * sign > 0)
        found = found[np.argsort(-moved[found], kind="stable")][:most]
        chosen += [(int(i), turned) for i in found]
    known = texts.read(name, task.data, [left.ids[i] for i, _ in chosen])
    shown = []
    for i, turned in chosen:
        rows = slice(groups.starts[i], groups.starts[i] + groups.sizes[i])
        sides = [_side(side, metric, rows) for side in scores]
        asked = known.get(left.ids[i], {"text": GONE, "answers": []})
        shared = {**asked, "gold": int(np.argmax(gold[rows])), "theirs": sides[1]}
        shown.append(Flip(id=left.ids[i], turned=turned, shared=shared, ours=sides[0]))
    yield Moved(
        tier="tier3",
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


def _side(scores: Mapping[str, Floats], metric: str, rows: slice) -> list[list[float]]:
    """The candidates' scores as they are ranked, and their log-probs where those are others."""
    kinds = [metric] if metric == "raw" else [metric, "raw"]
    return [[rounded(value) for value in scores[kind][rows]] for kind in kinds]
