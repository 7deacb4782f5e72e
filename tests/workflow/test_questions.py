"""What a model was asked once is not asked again, whatever is made of its answer or called by it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.caches import CacheStates, describe_entry, tier_entries
from evaluation.dependencies.outdated import Outdated
from evaluation.grading.collect import collect
from evaluation.prefill.tiers import PREFILLS
from evaluation.results.read import read_results
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.job import score_subject
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stages
from tests.workflow.world import ANSWERED, FIRST_LETTER, World

QUIZ = {
    "dataset": "made/quiz",
    "split": "test",
    "choices": "answers",
    "gold": "label",
    "context": "Question: {{ question }}\nAnswer:",
    "limit": 8,
}
SUMS = {**ANSWERED, "max_new_tokens": 4, "verifiers": {"first": FIRST_LETTER}, "limit": 5}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engine is asked, one by one."""
    found: list[Any] = []

    def spy(name: str) -> None:
        known: Callable[..., Any] = getattr(EngineBackend, name)

        def asking(self: EngineBackend, requests: Any, *given: Any, **named: Any) -> Any:
            found.extend(requests)
            return known(self, requests, *given, **named)

        monkeypatch.setattr(EngineBackend, name, asking)

    spy("log_likelihoods")
    spy("answers")
    return found


def subject_of(world: World, suite: dict[str, Any], results: str = "results") -> Subject:
    """A checkpoint whose stage has this suite alone, prefilled."""
    (world.folder / "suites" / "own.yaml").write_text(yaml.safe_dump(suite))
    config = yaml.safe_load(world.config.read_text())
    stage = {"checkpoints": str(world.folder / "ckpts/stage1"), "steps": [10], "suites": ["own"]}
    config |= {"stages": {"one": stage}, "results": str(world.folder / results)}
    config["verification"] = {"workers": 1}
    world.config.write_text(yaml.safe_dump(config))
    plan = plan_stages(load_config(world.config))["one"]
    for tier in plan.tiers:
        for name in plan.cache_entries(tier):
            PREFILLS[tier].make(plan, name)
    return step_subject(plan, 10)


def described(plan: StagePlan) -> list[dict[str, str]]:
    """What a score keeps of the stage's caches."""
    states = CacheStates()
    found = ((entry, states.record(entry)) for entry in tier_entries(plan))
    return [describe_entry(entry, record) for entry, record in found if record is not None]


def table_of(subject: Subject) -> list[dict[str, Any]]:
    """Rows of the table of candidates, after scoring and grading."""
    assert score_subject(subject).error is None
    assert collect(subject).error is None
    rows: list[dict[str, Any]] = pq.read_table(
        subject.folder / "tier3_cf_candidates.parquet"
    ).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("tasks", "new"),
    [
        ({"quiz": {**QUIZ, "gold": "(label + 1) % 3"}}, 0),
        ({"quiz": {**QUIZ, "cluster": "{{ label }}", "stratum": "{{ label }}"}}, 0),
        ({"quiz": {**QUIZ, "limit": 11}}, 9),
        ({"quiz": {**QUIZ, "limit": 3}}, 0),
        ({"riddles": QUIZ}, 0),
        ({"quiz": QUIZ, "more": {**QUIZ, "limit": 9}}, 3),
        ({"quiz": {**QUIZ, "continuation": "{{ choice }}"}}, 24),
        ({"quiz": {**QUIZ, "unconditional_context": "Answer:"}}, 48),
    ],
    ids=["gold", "groups", "raised", "lowered", "renamed", "beside", "candidates", "twins"],
)
def test_questions_that_are_new_are_scored_and_no_others(
    world: World, asked: list[Any], tasks: dict[str, Any], new: int
) -> None:
    table_of(subject_of(world, {"tasks": {"quiz": QUIZ}}))
    assert len(asked) == 24
    asked.clear()
    ours = table_of(subject_of(world, {"tasks": tasks}))
    assert len(asked) == new
    fresh = table_of(subject_of(world, {"tasks": tasks}, results="fresh"))
    for row, other in zip(ours, fresh, strict=True):
        assert row.keys() == other.keys()
        for key, value in row.items():
            expected = pytest.approx(other[key], abs=1e-4) if key in FLOATS else other[key]
            assert value == expected, key


FLOATS = ("logprob", "unconditional", "gold_bits_per_byte", "correct_probability", "margin")


def test_what_is_made_of_an_answer_asks_for_no_gpu(world: World) -> None:
    """The record of the scores holds, but that of the results does not; a command reads golds, too."""
    subject = subject_of(world, {"tasks": {"quiz": QUIZ}})
    table_of(subject)
    before = described(subject.plan)
    subject = subject_of(
        world, {"tasks": {"quiz": {**QUIZ, "gold": "0", "cluster": "{{ label }}"}}}
    )
    outdated = Outdated({"one": subject.plan})
    assert not outdated.score(subject)
    assert outdated.collect(subject)
    assert described(subject.plan) == before
    table_of(subject)
    assert not Outdated({"one": subject.plan}).collect(subject)


def test_a_command_may_read_all_of_a_cache(world: World) -> None:
    found = []
    for gold in ("label", "0"):
        plan = subject_of(world, {"tasks": {"quiz": {**QUIZ, "gold": gold}}}).plan
        stage = plan.stage.model_copy(update={"command": "true"})
        found.append(described(replace(plan, stage=stage)))
    assert found[0] != found[1]


def test_a_renamed_generation_task_generates_nothing(world: World, asked: list[Any]) -> None:
    texts = []
    for name in ("sums", "totals"):
        subject = subject_of(world, {"generation_tasks": {name: SUMS}})
        assert score_subject(subject).error is None
        assert collect(subject).error is None
        text = (subject.folder / "generation" / name / "completions.jsonl").read_text()
        texts.append(text.replace(f"{name}/", ""))
        assert name in read_results(subject.folder, ("tier5",)).tiers["tier5"].items
    assert len(asked) == 5
    assert texts[0] == texts[1]
