"""Tier5 in a tiny world: what is generated, what is verified, and what is counted."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import SourceError
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from tests.results.page import undescribed
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, World, ask_for_answers

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "strata": {"label": "{{ label }}"},
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "primary": "strict",
    "limit": 12,
}
SAMPLED = {**TASK, "chat": True, "sampling": {"temperature": 1.0, "n": 4, "seed": 1}}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rates_are_those_of_the_completions_and_what_has_no_room_is_named(world: World) -> None:
    long = {**TASK, "prompt": "{{ question * (1 if label else 9) }}"}
    subject = step_subject(ask_for_answers(world, {"long": long, "sampled": SAMPLED}), 5)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    tasks = json.loads((subject.folder / "tier5_verified.json").read_text())["generation_tasks"]
    assert (tasks["sampled"]["prompts"], tasks["sampled"]["samples"]) == (12, 48)
    assert set(tasks["sampled"]["verifiers"]["strict"]["pass_at_k"]) == {"1", "2", "4"}
    assert tasks["long"]["too_long"] == [f"long/{index}" for index in range(0, 12, 3)]
    left_out = {"limit": 12, "too_long": 4}
    assert tasks["long"]["items"] == {"asked": 24, "used": 8, "left_out": left_out}
    lines = rows_of(subject.folder / "generation/sampled/results.jsonl")
    for row in pq.read_table(subject.folder / "tier5_verified_units.parquet").to_pylist():
        if row["item"] == "sampled":
            own = [line for line in lines if line["id"] == row["unit"]]
            right = sum(line["completion"].strip()[:1] == "a" for line in own)
            assert (len(own), row["pass_rate"]) == (4, pytest.approx(right / 4))
            verdicts = [line["verdicts"]["lenient"]["credit"] for line in own]
            assert row["pass_rate_lenient"] == pytest.approx(sum(verdicts) / 4)
    assert [*undescribed(world.results())] == []


def test_a_limit_that_leaves_no_room_for_a_prompt_is_refused(world: World) -> None:
    said = r"no prompt leaves room .* lower `max_new_tokens` to (\d+) or less"
    with pytest.raises(SourceError, match=said):
        ask_for_answers(world, {"sums": {**TASK, "max_new_tokens": 6000}})
