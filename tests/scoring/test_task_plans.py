"""Plans of tasks that are kept in the shared cache, beside questions that are read and planned anew."""

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.files import write_jsonl
from evaluation.prefill import caches
from evaluation.prefill.caches import TaskCache
from evaluation.scoring import task_plans
from evaluation.scoring.choices import SCHEMA, score_plan
from evaluation.scoring.engine.packed_rows import plan_requests
from evaluation.scoring.engine.window import Request, fit_requests
from evaluation.scoring.task_plans import FitWindow, KeptPlan, TaskPlan
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
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskCache:
    monkeypatch.setattr(task_plans, "LEAST", 1)
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
    """Row by row, from requests that are scored one after the other."""
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


def kept(task: TaskCache, window: FitWindow = WINDOW) -> KeptPlan:
    """As another job finds it: nothing is read yet."""
    return KeptPlan(task.folder / "plans", TaskCache(task.folder, task.meta), window)


def refuse(*_: object) -> None:
    raise AssertionError("a file is parsed")


def test_a_kept_plan_gives_the_same_bytes(task: TaskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept(task)
    fresh = first.of(first.keys)
    table = scored(fresh)
    expected = by_hand(task)
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
    monkeypatch.setattr(caches, "_lines", refuse)
    again = kept(task)
    plan = again.of(again.keys)
    assert plan is not fresh
    assert scored(plan).equals(table)
    assert list(plan.requests) == list(fresh.requests)  # with their names


def test_some_questions_are_planned_anew(task: TaskCache) -> None:
    whole = kept(task)
    table = scored(whole.of(whole.keys))
    again = kept(task)
    few = scored(again.of(again.keys[7:9]))
    assert few["key"].to_pylist() == whole.keys[7:9]
    assert few["logprob"].to_pylist() == [
        pytest.approx(row, abs=1e-5) for row in table["logprob"].to_pylist()[7:9]
    ]


@pytest.mark.parametrize("place", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_a_damaged_plan_is_not_used(
    task: TaskCache, place: float, caplog: pytest.LogCaptureFixture
) -> None:
    first = kept(task)
    whole = list(first.of(first.keys).requests)
    content = bytearray(first.path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 0xFF
    first.path.write_bytes(content if place < 1 else content[:-200])
    again = kept(task)
    assert list(again.of(again.keys).requests) == whole
    assert "cannot be read" in caplog.messages[0]
    third = kept(task)
    assert list(third.of(third.keys).requests) == whole


def test_without_a_place_for_it(task: TaskCache, caplog: pytest.LogCaptureFixture) -> None:
    (task.folder / "plans").write_text("in the way")
    first = kept(task)
    assert len(first.of(first.keys).requests) > 40
    assert "cannot be written" in caplog.text


def test_another_window_has_another_plan(task: TaskCache) -> None:
    for bos, length in ((1, 14), (None, 14), (1, 20)):
        plan = kept(task, FitWindow(length, 0, bos))
        plan.of(plan.keys)
    assert len(list((task.folder / "plans").iterdir())) == 3


def test_plans_hold_the_requests_that_they_were_made_of() -> None:
    draw = random.Random(2)
    requests = [
        Request(
            tuple(draw.randrange(3) for _ in range(draw.randint(1, 5))),
            tuple(draw.randrange(70_000) for _ in range(draw.randint(1, 4))),
            f"number {number}",
        )
        for number in range(200)
    ]
    plan = plan_requests(requests)
    assert list(plan) == requests
    assert plan[-3:] == requests[-3:]
    owned = [plan.owners(member) for member in range(len(plan.trie))]
    assert sorted(itertools.chain(*owned)) == list(range(200))
    assert all(
        plan.trie.place[owner] == member for member, group in enumerate(owned) for owner in group
    )
