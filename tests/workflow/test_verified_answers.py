"""Tier5 from prefill to deltas in a tiny world: what is generated and what is verified."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.bridge.write import write_deltas
from evaluation.checkpoints.subjects import Subject, bridge_subject, step_subject
from evaluation.errors import SourceError
from evaluation.files import temporary_path
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


def run(subject: Subject) -> dict[str, Any]:
    """Scores and collects; Tier5's file."""
    assert make(SCORE, subject).error is None
    collected = make(COLLECT, subject)
    assert collected.error is None, collected.error
    found: dict[str, Any] = json.loads((subject.folder / "tier5_verified.json").read_text())
    return found


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_run_gives_every_file_and_deltas(world: World) -> None:
    plan = ask_for_answers(world, {"sums": TASK, "sums_sampled": SAMPLED})
    for subject in (step_subject(plan, 5), bridge_subject(plan, world.plans)):
        found = run(subject)
        assert set(found["generation_tasks"]) == {"sums", "sums_sampled"}
        greedy, sampled = (found["generation_tasks"][name] for name in ("sums", "sums_sampled"))
        assert (greedy["prompts"], greedy["samples"]) == (12, 12)
        assert (sampled["prompts"], sampled["samples"]) == (12, 48)
        assert greedy["items"] == {"asked": 24, "used": 12, "left_out": {"limit": 12}}
        assert set(sampled["verifiers"]["strict"]["pass_at_k"]) == {"1", "2", "4"}
        folder = subject.folder / "generation" / "sums_sampled"
        lines = rows_of(folder / "results.jsonl")
        assert len(lines) == 48
        rows = pq.read_table(subject.folder / "tier5_verified_units.parquet").to_pylist()
        for row in (row for row in rows if row["item"] == "sums_sampled"):
            own = [line["verdicts"] for line in lines if line["id"] == row["unit"]]
            for view, column in (("strict", "pass_rate"), ("lenient", "pass_rate_lenient")):
                right = sum(verdicts[view]["credit"] == 1 for verdicts in own)
                assert (len(own), row[column]) == (4, pytest.approx(right / 4))
        for line in lines:
            is_right = line["completion"].strip()[:1] == "a"
            assert line["verdicts"]["strict"]["credit"] == float(is_right)
    write_deltas(plan, 5)
    deltas = json.loads((plan.step_folder(5) / "bridge_deltas.json").read_text())
    metrics = {(one["item"], one["metric"]) for one in deltas["deltas"] if one["tier"] == "tier5"}
    pairs = {("sums", "delta_pass_rate"), ("sums", "delta_pass_rate_lenient")}
    assert metrics >= {*pairs, ("overall", "delta_pass_rate")}
    assert [*undescribed(world.results())] == []


def test_files_of_other_suites_go_and_those_being_written_stay(world: World) -> None:
    """Two runs may collect one step at once; each must leave what the other is writing."""
    subject = step_subject(ask_for_answers(world, {"sums": TASK, "more": TASK}), 5)
    run(subject)
    written = temporary_path(subject.folder / "generation" / "sums" / "results.jsonl")
    written.write_bytes(b"half of it")
    subject = step_subject(ask_for_answers(world, {"sums": TASK}), 5)
    run(subject)
    assert written.read_bytes() == b"half of it"
    assert (subject.folder / "generation" / "sums" / "results.jsonl").is_file()
    assert not list((subject.folder / "generation" / "more").glob("*"))


def test_prompts_without_room_are_left_out_and_named(world: World) -> None:
    long = {**TASK, "prompt": "{{ question * (1 if label else 9) }}"}
    subject = step_subject(ask_for_answers(world, {"sums": long}), 5)
    found = run(subject)
    task = found["generation_tasks"]["sums"]
    assert task["too_long"] == [f"sums/{index}" for index in range(0, 12, 3)]
    assert task["items"]["left_out"] == {"limit": 12, "too_long": 4}
    said = r"no prompt leaves room .* lower `max_new_tokens` to (\d+) or less"
    with pytest.raises(SourceError, match=said):
        ask_for_answers(world, {"sums": {**TASK, "max_new_tokens": 6000}})
