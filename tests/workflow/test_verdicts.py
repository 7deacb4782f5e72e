"""Completions, given to a stage's verifiers, whose limits decide verdicts and no more."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.errors import ScoringError
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE, Targets
from evaluation.grading.completions import (
    SampledPrompt,
    VerifiedSample,
    check_samples,
    prompt_units,
    sample_rows,
    summarize_task,
    verify_samples,
)
from evaluation.grading.verdicts import find_verdicts
from evaluation.prefill.caches import DocumentLine, read_documents, read_prompts
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore
from evaluation.verification.pool import VerifierJob, verify_all
from evaluation.verification.verdicts import Verdict
from tests.workflow.world import (
    ANSWERED,
    FIRST_LETTER,
    LAST_LETTER,
    World,
    ask_for_answers,
    want_answers,
)

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "stop": ["!"],
    "limit": 3,
}


@pytest.fixture
def plan(world: World) -> StagePlan:
    return ask_for_answers(world, {"sums": TASK})


def judge(plan: StagePlan, *texts: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the task's verifiers give for these completions of its prompts."""
    folder = plan.cache_folder("tier5", "sums")
    cache, documents = read_prompts(folder), read_documents(folder)
    task = settled_task(plan.suite.generation_tasks["sums"], cache.meta)
    samples = [
        (id, 0, StoredCompletion(text, "eos", 1, 1))
        for id, text in zip(documents, texts, strict=True)
    ]
    store = ScoreStore(plan.scores, "completions")
    find = partial(find_verdicts, plan, store, TIERS["tier5"], "sums")
    prompts = verify_samples(task, cache, documents, samples, find)
    summary = summarize_task(prompts, prompt_units(prompts, task.views), task.views)
    return [*sample_rows(prompts)], summary


def test_verdicts_are_those_of_the_tasks_verifiers(plan: StagePlan) -> None:
    """The gold answer is `a`."""
    judged, summary = judge(plan, "a b", "b a", "b")
    credits = [{k: v["credit"] for k, v in row["verdicts"].items()} for row in judged]
    assert credits == [
        {"strict": 1.0, "lenient": 0.0},
        {"strict": 0.0, "lenient": 1.0},
        {"strict": 0.0, "lenient": 0.0},
    ]
    assert summary["verifiers"]["strict"]["pass_rate"] == pytest.approx(1 / 3)


THOUGHT = "<think>b b b</think>\n"


def test_what_follows_the_thinking_is_judged(plan: StagePlan, world: World) -> None:
    """Of all of a completion, `lenient` would find the `b` of the thinking, and `strict` no `a`.

    Without the mark, the thinking never ended.
    """
    edited = want_answers(world, {"sums": {**TASK, "answer_after": "</think>"}})
    texts = [f"{THOUGHT}a", f"{THOUGHT}{THOUGHT} b a", "a, and no thinking"]
    judged, _ = judge(edited, *texts)
    assert [row["verdicts"]["strict"]["credit"] for row in judged] == [1.0, 0.0, 0.0]
    assert [row["completion"] for row in judged] == texts


def test_too_many_failed_verdicts_are_an_error(plan: StagePlan) -> None:
    def check(*verdicts: Verdict) -> None:
        samples = [
            VerifiedSample(n, StoredCompletion("a", "eos", 1, 1), {"strict": one})
            for n, one in enumerate(verdicts)
        ]
        line = DocumentLine(id="7", document={}, strata={})
        check_samples(
            [SampledPrompt(line, "", samples)], "sums", plan.config.verification.max_error_share
        )

    failed = Verdict(credit=None, reason="out of time")
    with pytest.raises(ScoringError, match=r"strict: 1 of 1 .* sample 0 of 7: out of time"):
        check(failed)
    check(failed, *[Verdict(credit=1.0)] * 99)


def answered(world: World) -> Subject:
    """A step whose answers are there, and judged under the limits as they are."""
    subject = step_subject(ask_for_answers(world, {"sums": {**TASK, "limit": 12}}), 5)
    assert make(SCORE, subject).error is None
    return subject


def under(world: World, **edit: Any) -> Subject:
    """The same under other limits."""
    world.change(verification={"workers": 1, **edit})
    return step_subject(world.plans["stage2"], 5)


LIMITS: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "nothing": ({}, False, False),
    "more time": ({"seconds": 30.0}, True, True),
    "errors allowed": ({"max_error_share": 0.5}, True, False),
}
"""Edits of `verification`: whether they outdate what was graded, and whether verdicts are made anew."""


@pytest.mark.parametrize("name", LIMITS)
def test_limits_decide_verdicts_and_nothing_else(
    name: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit, is_outdated, is_judged = LIMITS[name]
    asked = _counted(monkeypatch)
    assert make(COLLECT, answered(world)).error is None
    first = len(asked)
    assert first > 0
    subject, targets = under(world, **edit), Targets()
    assert targets.score(subject).record is not None
    assert (targets.collect(subject).record is None) == is_outdated
    for _ in range(2):
        assert make(COLLECT, subject).error is None
        assert len(asked) - first == (first if is_judged else 0)


def test_checks_of_probes_are_verified_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, enough=2.0)
    subject = under(world, seconds=1.0)
    assert make(SCORE, subject).error is None
    assert "no_chat_artifacts of colour: too late" in str(make(COLLECT, subject).error)
    subject = under(world, seconds=2.0)
    assert Targets().collect(subject).record is None
    for _ in range(2):
        assert make(COLLECT, subject).error is None
        assert asked == [1.0, 2.0]


def _counted(monkeypatch: pytest.MonkeyPatch, enough: float = 0.0) -> list[float]:
    """The limit of each verdict that is asked for; the first fails where it has not `enough` time."""
    asked: list[float] = []

    def verify(jobs: Sequence[VerifierJob], *, seconds: float, **named: Any) -> Iterator[Any]:
        for number, verdict in verify_all(jobs, seconds=seconds, **named):
            asked.append(seconds)
            is_late = number == 0 and seconds < enough
            yield number, Verdict(credit=None, reason="too late") if is_late else verdict

    monkeypatch.setattr("evaluation.grading.verdicts.verify_all", verify)
    return asked
