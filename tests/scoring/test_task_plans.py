"""Plans of tasks beside requests that are scored one after the other."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.files import write_jsonl
from evaluation.prefill.caches import TaskCache
from evaluation.scoring.choices import SCHEMA, score_plan
from evaluation.scoring.engine.window import Request, fit_requests
from evaluation.scoring.task_plans import FitWindow, TaskPlan, plan_questions
from tests.scoring import tiny

WINDOW = FitWindow(max_length=14, prefix_token=0, bos=1)


def line(draw: random.Random, number: int) -> dict[str, Any]:
    """A question as prefill writes it: some have no context, long ones, or unconditional candidates."""

    def tokens(least: int, most: int) -> list[int]:
        return [draw.randrange(2, 12) for _ in range(draw.randint(least, most))]

    def candidate(context: int) -> dict[str, Any]:
        return {"context": context, "text": "é", "tokens": tokens(1, 3), "chars": 1, "bytes": 2}

    contexts = [[1, *tokens(0, 20)] for _ in range(draw.choice([1, 2, 4]))] + [[]]
    return {
        "id": f"quiz/{number}“",
        "cluster": None,
        "gold": 0,
        "contexts": [{"text": "", "tokens": one} for one in contexts],
        "candidates": [candidate(draw.randrange(len(contexts))) for _ in range(draw.randint(1, 5))],
        "unconditional": draw.choice([None, [candidate(len(contexts) - 1)]]),
    }


@pytest.fixture
def task(tmp_path: Path) -> TaskCache:
    draw = random.Random(5)
    rows = [line(draw, number) for number in range(40)]
    rows.append(rows[3])  # one question twice, under one key
    about = {"cluster": None, "stratum": None, "gold": 0, "sizes": []}
    write_jsonl(tmp_path / "examples.jsonl", rows)
    write_jsonl(
        tmp_path / "docs.jsonl",
        ({**about, "id": row["id"], "key": f"key of {row['id']}"} for row in rows),
    )
    return TaskCache(tmp_path, {"checksum": {"examples.jsonl": "a"}, "items": {"used": len(rows)}})


def scored(plan: TaskPlan) -> pa.Table:
    return score_plan(tiny.backend(tiny.engine()), plan, label="quiz").table


def by_hand(task: TaskCache) -> pa.Table:
    """PackedRow by row, from requests that are scored one after the other."""
    rows = []
    for key, item in dict(zip(task.keys, task.items, strict=True)).items():
        kinds = item.candidates, item.unconditional or ()
        requests = [Request(item.contexts[c.context].tokens, c.tokens) for k in kinds for c in k]
        fitted = fit_requests(requests, max_length=14, prefix_token=0, bos=1)
        scores = tiny.backend(tiny.engine()).log_likelihoods(fitted.requests, label="quiz")
        first, others = scores[: len(kinds[0])], scores[len(kinds[0]) :]
        rows.append(
            {
                "key": key,
                "logprob": [one.logprob for one in first],
                "unconditional": [one.logprob for one in others] or None,
                "is_greedy": [one.is_greedy for one in first],
                "truncated": fitted.truncated,
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_the_scores_are_those_of_requests_one_after_the_other(task: TaskCache) -> None:
    questions = dict(zip(task.keys, task.items, strict=True))
    table, expected = scored(plan_questions(questions, WINDOW)), by_hand(task)
    assert table.drop(["logprob", "unconditional"]) == expected.drop(["logprob", "unconditional"])
    for name in ("logprob", "unconditional"):
        assert table[name].is_null() == expected[name].is_null()
        flat = (
            np.concatenate([row or [] for row in one[name].to_pylist()])
            for one in (table, expected)
        )
        assert next(flat) == pytest.approx(next(flat), abs=1e-5)
    assert table["unconditional"].null_count > 3
    assert max(table["truncated"].to_pylist()) > 0
