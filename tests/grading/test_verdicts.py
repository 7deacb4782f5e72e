"""What the store of verdicts asks verifiers for, and what it already has."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ScoringError
from evaluation.grading import verdicts
from evaluation.grading.completions import SampledPrompt, VerifiedSample, check_samples
from evaluation.grading.verdicts import AnswerJob, find_verdicts
from evaluation.prefill.caches import DocumentLine
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import Pattern
from evaluation.store import ScoreStore
from evaluation.verification.registry import verify
from evaluation.verification.verdicts import Verdict
from tests.bridge.folders import make_plans

FIRST = Pattern(kind="pattern", pattern="(.)")
JOBS: list[AnswerJob] = [(FIRST, {"gold": "a"}, text) for text in ("a", "b", "c", "busy", "e", "a")]


class Verifiers:
    """Verifies without processes; the texts that it was asked for, and the one at which it stops."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.stops_at = ""

    def __call__(self, jobs: Sequence[Any], **_: Any) -> Iterator[tuple[int, Verdict]]:
        for number, job in enumerate(jobs):
            if job[2] == self.stops_at:
                raise KeyboardInterrupt
            self.asked.append(job[2])
            yield number, Verdict(credit=None) if job[2] == "busy" else verify(*job)


@pytest.fixture
def verifiers(monkeypatch: pytest.MonkeyPatch) -> Verifiers:
    found = Verifiers()
    monkeypatch.setattr(verdicts, "verify_all", found)
    return found


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    return make_plans(tmp_path)["first"]


def find(plan: StagePlan, jobs: Sequence[AnswerJob] = JOBS) -> list[float | None]:
    store = ScoreStore(plan.scores, "a checkpoint")
    return [one.credit for one in find_verdicts(plan, store, TIERS["tier5"], "sums", jobs)]


def test_each_text_is_verified_once_and_a_failure_again(
    plan: StagePlan, verifiers: Verifiers
) -> None:
    credits = [1.0, 0.0, 0.0, None, 0.0, 1.0]
    assert find(plan) == credits
    assert verifiers.asked == ["a", "b", "c", "busy", "e"]
    assert find(plan) == credits
    assert verifiers.asked[5:] == ["busy"]


def test_what_decides_a_verdict_is_in_its_key(plan: StagePlan, verifiers: Verifiers) -> None:
    def limited(**limits: Any) -> StagePlan:
        how = plan.config.verification.model_copy(update=limits)
        return replace(plan, config=plan.config.model_copy(update={"verification": how}))

    jobs = JOBS[:1]
    assert find(plan, jobs) == [1.0]
    for others in (
        [(FIRST.model_copy(update={"ignore_case": True}), {"gold": "a"}, "a")],
        [(FIRST, {"gold": "b"}, "a")],
        [(FIRST, {"gold": "a"}, "a!")],
    ):
        before = len(verifiers.asked)
        find(plan, others)
        assert len(verifiers.asked) == before + 1
    seconds, memory_mb = plan.config.verification.seconds, plan.config.verification.memory_mb
    for edit, is_asked in (
        ({"seconds": 2 * seconds}, True),
        ({"memory_mb": memory_mb // 2}, True),
        ({"processes": 3, "max_error_share": 0.5}, False),
    ):
        before = len(verifiers.asked)
        find(limited(**edit), jobs)
        assert len(verifiers.asked) == before + is_asked


def test_verdicts_before_an_interruption_are_stored(
    plan: StagePlan, verifiers: Verifiers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "_PART", 2)
    verifiers.stops_at = "busy"
    with pytest.raises(KeyboardInterrupt):
        find(plan)
    verifiers.stops_at, verifiers.asked = "", []
    assert find(plan)[:3] == [1.0, 0.0, 0.0]
    assert verifiers.asked == ["c", "busy", "e"]


def test_too_many_failed_verdicts_are_an_error() -> None:
    def check(*found: Verdict) -> None:
        stored = StoredCompletion("a", "eos", 1, 1)
        samples = [VerifiedSample(n, stored, {"strict": one}) for n, one in enumerate(found)]
        line = DocumentLine(id="7", document={}, strata={})
        check_samples([SampledPrompt(line, "", samples)], "sums", 0.01)

    failed = Verdict(credit=None, reason="out of time")
    with pytest.raises(ScoringError, match=r"strict: 1 of 1 .* sample 0 of 7: out of time"):
        check(failed)
    check(failed, *[Verdict(credit=1.0)] * 99)
