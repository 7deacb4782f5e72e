"""Completions of other engines, used as a checkpoint's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import ScoringError
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.grading.by_hand import import_file, read_completions, verify_file
from evaluation.prefill.caches import read_prompts
from evaluation.records import read_record
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, World, ask_for_answers

TEXTS = {"sums/0": ["a", "b é"], "sums/2": ["c\nd", ""]}


def write(path: Path, texts: dict[str, list[str]]) -> Path:
    rows = [{"id": id, "completion": text} for id, own in texts.items() for text in own]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_samples_are_in_the_order_of_their_lines(tmp_path: Path) -> None:
    found = read_completions(write(tmp_path / "a.jsonl", TEXTS), TEXTS)
    expected = {(id, n): text for id, texts in TEXTS.items() for n, text in enumerate(texts)}
    assert {key: line.completion for key, line in found.items()} == expected


TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "stop": ["!"],
    "limit": 4,
    "sampling": {"temperature": 1.0, "n": 2},
}


def scored(plan: StagePlan) -> Any:
    """What Tier5's file says of the task of step 5."""
    subject = step_subject(plan, 5)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    return read_results(subject.folder, ("tier5",)).tiers["tier5"].items["sums"].entry


def rate(entry: Any) -> float:
    return entry.verifiers[entry.primary].pass_rate  # type: ignore[no-any-return]


def test_they_are_used_as_the_checkpoints_own(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ask_for_answers(world, {"sums": TASK})
    plans, subject = world.plans, step_subject(plan, 5)
    generated = scored(plan)
    assert generated.engine is None
    ids = [prompt.id for prompt in read_prompts(plan.cache_folder("tier5", "sums")).prompts]
    given = {id: ["a! and more", "b" * (n + 1)] for n, id in enumerate(ids)}
    path = write(tmp_path / "samples.jsonl", given)

    import_file(plans, subject, "sums", path, "other 1.2")
    assert read_record(subject.folder, SCORE) is None
    with monkeypatch.context() as patch:
        patch.setattr("evaluation.scoring.completions.completion_table", None)
        entry = scored(plan)  # nothing is generated
    about = {"name": "other 1.2", "imported": "samples.jsonl"}
    assert entry.engine.model_dump(exclude_none=True) == about
    assert entry.decoding["engine"] == "other 1.2"
    assert rate(entry) == 0.5
    lines = (subject.folder / "generation/sums/results.jsonl").read_text().splitlines()
    found = [(one["completion"], one["stop_reason"]) for one in map(json.loads, lines)]
    assert found[:3] == [("a", "stop_string"), ("b", "eos"), ("a", "stop_string")]
    assert verify_file(plan, "sums", path)[1]["verifiers"]["strict"]["pass_rate"] == 0.5

    again = write(tmp_path / "again.jsonl", {id: ["a", "a"] for id in ids})
    import_file(plans, subject, "sums", again, "another engine")
    entry = scored(plan)
    assert (entry.engine.name, rate(entry)) == ("another engine", 1.0)
    next(plan.scores.glob("*/imported.json")).unlink()
    entry = scored(plan)
    assert (entry.engine, rate(entry)) == (None, rate(generated))


def test_prompts_that_have_changed_since_are_told(world: World, tmp_path: Path) -> None:
    plan = ask_for_answers(world, {"sums": TASK})
    ids = [prompt.id for prompt in read_prompts(plan.cache_folder("tier5", "sums")).prompts]
    path = write(tmp_path / "a.jsonl", {id: ["a", "b"] for id in ids})
    import_file(world.plans, step_subject(plan, 5), "sums", path, "other")
    plan = ask_for_answers(world, {"sums": {**TASK, "prompt": "Other: {{ question }}"}})
    with pytest.raises(ScoringError, match="were imported, so that 8 of 8 completions are missing"):
        make(SCORE, step_subject(plan, 5))
