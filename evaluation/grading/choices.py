"""Tier3: questions with their stored scores, as a table of candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.prefill.caches import EXAMPLES, QuestionLine, read_questions
from evaluation.results.columns import CANDIDATES, arrow_schema
from evaluation.settings.plan import StagePlan
from evaluation.settings.sources import Normalization
from evaluation.store import ScoreStore

SCHEMA = arrow_schema(CANDIDATES[1:])  # the first one names the item


@dataclass(frozen=True)
class ScoredTask:
    """A table of SCHEMA, contexts that were cut, the scores' summaries, and what data it is of."""

    table: pa.Table
    truncated: int
    scores: Sequence[Mapping[str, Any]]
    origin: Mapping[str, Any]
    primary: Normalization | None
    """The normalization that a provider reports."""


def scored_task(
    plan: StagePlan, store: ScoreStore, name: str, entry: Mapping[str, Any]
) -> ScoredTask:
    """Return a task's questions as they are known now.

    Args:
        plan: The stage that has the task.
        store: Scores of one checkpoint.
        name: The task's name in the suite.
        entry: The task's entry of the job's record.

    Returns:
        The candidates of all questions, with what they were scored under.

    Raises:
        ScoringError: When a question's score is missing from the store.
        CacheError: When the task's cache is not there.
    """
    questions, meta = read_questions(plan.cache_folder("tier3", name))
    keys = {line.key for line in questions}
    rows, used = store.find_rows(entry["choices"], keys, lambda row, _: row)
    if lacking := keys - rows.keys():
        lost = next(line.id for line in questions if line.key in lacking)
        raise ScoringError(
            f"{store.folder}: the score of {lost} is missing ({len(lacking)} in all); score this "
            "checkpoint again"
        )
    stored = [rows[line.key] for line in questions]
    checksum = {EXAMPLES: meta["checksum"][EXAMPLES]}
    return ScoredTask(
        candidates(questions, stored),
        sum(row["truncated"] for row in stored),
        list(used.values()),
        {"data": meta["definition"], "data_checksum": checksum, "items": meta["items"]},
        meta["source"].get("primary"),
    )


def candidates(lines: Sequence[QuestionLine], stored: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a row of SCHEMA for each candidate.

    Args:
        lines: The questions.
        stored: Each question's row in the store, in the same order.

    Returns:
        The table, those of one question together.
    """
    counts = [len(line.sizes) for line in lines]
    sizes = np.array(list(chain.from_iterable(line.sizes for line in lines))).reshape(-1, 3).T

    def repeated(values: Sequence[Any]) -> list[Any]:
        return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]

    def flat(key: str) -> list[Any]:
        return list(chain.from_iterable(row[key] for row in stored))

    unconditional = [
        row["unconditional"] or [None] * n for row, n in zip(stored, counts, strict=True)
    ]
    columns = {
        "item": repeated([line.id for line in lines]),
        "cluster": repeated([line.cluster for line in lines]),
        "stratum": repeated([line.stratum for line in lines]),
        "candidate": [number for count in counts for number in range(count)],
        "gold": [number == line.gold for line in lines for number in range(len(line.sizes))],
        "logprob": flat("logprob"),
        "unconditional": list(chain.from_iterable(unconditional)),
        **dict(zip(("tokens", "chars", "bytes"), sizes, strict=True)),
        "is_greedy": flat("is_greedy"),
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)
