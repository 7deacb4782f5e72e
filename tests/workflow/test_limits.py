"""Limits of `verification` decide verdicts: an edit judges again what it decides, and generates nothing."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.outdated import Outdated
from evaluation.grading.collect import collect
from evaluation.scoring.job import score_subject
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stages
from evaluation.verification.pool import Job, verify_all
from evaluation.verification.verdicts import Verdict
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, World, ask_for_answers

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "limit": 12,
}


def answered(world: World) -> Subject:
    """A step whose answers are there, and judged under the limits as they are."""
    subject = step_subject(ask_for_answers(world, {"sums": TASK}), 5)
    assert score_subject(subject).error is None
    return subject


def under(world: World, **edit: Any) -> tuple[Subject, Outdated]:
    """The same under other limits."""
    world.change(verification={"workers": 1, **edit})
    plans = plan_stages(load_config(world.config))
    return step_subject(plans["stage2"], 5), Outdated(plans)


LIMITS: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "nothing": ({}, False, False),
    "workers": ({"workers": 2}, False, False),
    "more time": ({"seconds": 30.0}, True, False),
    "less time": ({"seconds": 10.0}, True, True),
    "more memory": ({"memory_mb": 4096}, True, False),
    "less memory": ({"memory_mb": 1024}, True, True),
    "errors allowed": ({"max_error_share": 0.5}, True, False),
}
"""Edits of `verification`, whether they outdate what was graded, and whether every verdict is reached anew."""


@pytest.mark.parametrize("name", LIMITS)
def test_limits_decide_verdicts_and_nothing_else(
    name: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit, is_outdated, is_judged = LIMITS[name]
    asked = _counted(monkeypatch)
    assert collect(answered(world)).error is None
    first = len(asked)
    assert first > 0
    subject, outdated = under(world, **edit)
    assert (outdated.score(subject), outdated.collect(subject)) == (False, is_outdated)
    assert collect(subject).error is None
    assert len(asked) - first == (first if is_judged else 0)
    assert collect(subject).error is None
    assert len(asked) - first == (first if is_judged else 0)


def test_a_verdict_that_took_too_long_is_asked_for_under_a_wider_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _counted(monkeypatch, enough=21.0)
    error = str(collect(answered(world)).error)
    assert "could not be verified, more than verification.max_error_share 0.01" in error
    before = len(asked)
    subject, outdated = under(world, seconds=21.0)
    assert outdated.collect(subject)
    assert collect(subject).error is None
    assert len(asked) == before + 1  # the one that failed


def _counted(monkeypatch: pytest.MonkeyPatch, enough: float = 0.0) -> list[float]:
    """The limit of each verdict that is asked for; the first fails where it has not `enough` time."""
    asked: list[float] = []

    def verify(jobs: Sequence[Job], *, seconds: float, **named: Any) -> Iterator[Any]:
        for number, verdict in verify_all(jobs, seconds=seconds, **named):
            asked.append(seconds)
            is_late = number == 0 and seconds < enough
            yield number, Verdict(credit=None, reason="too late") if is_late else verdict

    monkeypatch.setattr("evaluation.grading.verdicts.verify_all", verify)
    return asked
