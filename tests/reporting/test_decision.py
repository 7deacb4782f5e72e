"""The decision at the head of a page: what it says follows from the stage's files."""

import json
from dataclasses import replace

import pytest

from evaluation.reporting.pages.decision import stage_decision
from evaluation.reporting.tables.stage_results import StageResults, read_stage
from evaluation.settings.plan import StagePlan
from tests.reporting.pages import STEPS


@pytest.fixture(scope="module")
def found(reported: dict[str, StagePlan]) -> StageResults:
    return read_stage(reported["second"], STEPS)


def test_a_checkpoint_that_is_taken(found: StageResults) -> None:
    decision = stage_decision(found)
    assert decision is not None
    content = json.loads((found.plan.results / "recommendation.json").read_text())
    headline = found.judged(content["step"]).objectives[0]
    change = headline.definition.change(headline.delta, headline.low, headline.high)
    assert decision.sentence == (
        f"Take step {content['step']}: it meets the objective against first/100 (accuracy {change})."
    )
    assert decision.path == content["checkpoint"]
    rows = found.judged(content["step"]).objectives
    assert len(decision.changes) == len(rows)
    for row, line in zip(rows, decision.changes, strict=True):
        assert row.definition.change(row.delta, row.low, row.high) in line
        assert line.endswith(f": {row.verdict})")


def test_the_runner_up_is_the_next_by_the_headline(found: StageResults) -> None:
    decision = stage_decision(found)
    assert decision is not None
    assert found.recommendation is not None
    gains = {
        step: found.judged(step).objectives[0].gain
        for step in found.deltas
        if step != found.recommendation.candidate
    }
    best = max(gains, key=lambda step: gains[step])
    assert decision.runner_up == f"step {best}, significantly behind"


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        ("undecided", "Nothing is decided: step 30 is the best candidate"),
        ("not met", "Do not go on: against first/100 no checkpoint meets the objective"),
    ],
)
def test_other_verdicts(found: StageResults, verdict: str, begins: str) -> None:
    assert found.recommendation is not None
    changed = found.recommendation.model_copy(update={"verdict": verdict})
    decision = stage_decision(replace(found, recommendation=changed), ("more questions",))
    assert decision is not None
    assert decision.sentence.startswith(begins)
    assert decision.open == (("more questions",) if verdict == "undecided" else ())


def test_the_risk_is_the_worse_end_of_the_interval(found: StageResults) -> None:
    assert found.recommendation is not None
    candidate = found.recommendation.candidate
    assert candidate is not None
    judged = found.judged(candidate)
    row = judged.objectives[0].model_copy(update={"low": -0.031, "regressions": ("quiz",)})
    verdicts = {candidate: judged.model_copy(update={"objectives": (row,)})}
    decision = stage_decision(replace(found, verdicts={**found.verdicts, **verdicts}))
    assert decision is not None
    assert decision.risks == (
        f"{row.definition.words} may be worse by as much as 3.1 points",
        "significantly worse: quiz",
    )


def test_nothing_is_decided_without_a_bridge(reported: dict[str, StagePlan]) -> None:
    assert stage_decision(read_stage(reported["first"], (100,))) is None
