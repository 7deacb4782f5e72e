"""The decision at the head of a page: what it says follows from the stage's files."""

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from evaluation.reporting.pages.decision import (
    NO_RISK,
    StageDecision,
    stage_decision,
    stage_decisions,
)
from evaluation.reporting.tables.stage_results import StageResults, read_stage
from evaluation.results.stage_files import RunnerUp, SimilarStep
from evaluation.settings.plan import StagePlan
from tests.reporting.pages import STEPS


@pytest.fixture(scope="module")
def found(reported: dict[str, StagePlan]) -> StageResults:
    return read_stage(reported["second"], STEPS)


def decided(found: StageResults, *remedies: str, **advised: Any) -> StageDecision:
    """The decision of a stage whose recommendation has these keys."""
    assert found.recommendation is not None
    changed = found.recommendation.model_copy(update=advised)
    decision = stage_decision(replace(found, recommendation=changed), remedies)
    assert decision is not None
    return decision


def with_rows(found: StageResults, *updates: dict[str, Any], deleted: bool = False) -> StageResults:
    """A stage whose candidate, step 30, has as many objectives, all like the first but for the updates."""
    judged = found.judged(30)
    rows = tuple(judged.objectives[0].model_copy(update=update) for update in updates)
    verdicts = {30: judged.model_copy(update={"objectives": rows})}
    return replace(found, verdicts={**found.verdicts, **verdicts}, deleted=(30,) if deleted else ())


def test_a_checkpoint_that_is_taken(found: StageResults) -> None:
    decision = decided(found)
    content = json.loads((found.plan.results / "recommendation.json").read_text())
    headline = found.judged(content["step"]).objectives[0]
    change = headline.definition.change(headline.delta, headline.low, headline.high)
    assert decision.sentence == (
        f"Take step {content['step']}: it meets the objective against first/100 (accuracy {change}), "
        "and no other that meets it gains more."
    )
    assert decision.path == content["checkpoint"]
    rows = found.judged(content["step"]).objectives
    assert len(decision.changes) == len(rows)
    for row, line in zip(rows, decision.changes, strict=True):
        assert row.definition.change(row.delta, row.low, row.high) in line
        assert line.endswith(f": {row.verdict})")


def test_the_runner_up_is_the_next_by_the_headline(found: StageResults) -> None:
    assert found.recommendation is not None
    gains = {
        step: found.judged(step).objectives[0].gain
        for step in found.deltas
        if step != found.recommendation.step
    }
    best = max(gains, key=lambda step: gains[step])
    assert decided(found).runner_up == f"step {best}, significantly behind"


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        ("undecided", "Nothing is decided: step 30 is the best candidate"),
        ("not met", "Do not go on: against first/100 no checkpoint meets the objective"),
    ],
)
def test_other_verdicts(found: StageResults, verdict: str, begins: str) -> None:
    decision = decided(found, "more questions", verdict=verdict)
    assert decision.sentence.startswith(begins)
    assert decision.open == (("more questions",) if verdict == "undecided" else ())


def test_the_risk_is_the_worse_end_of_the_interval(found: StageResults) -> None:
    """Also a folder that is gone; else the page says that nothing is worse."""
    worse = {"low": -0.031, "regressions": ("quiz",)}
    amount, items = decided(with_rows(found, worse)).risks
    assert "3.10 points" in amount
    assert "quiz" in items
    kept = {"low": 0.01, "regressions": (), "recipe_noise": None}
    gone, none = decided(with_rows(found, kept, deleted=True)).risks
    assert "folder" in gone
    assert none == NO_RISK
    decision = decided(with_rows(found, kept))
    assert (decision.risks, decision.recipe) == ((NO_RISK,), ())


def test_an_undecided_stage_is_told_by_its_undecided_objective(found: StageResults) -> None:
    """Not by the headline, which may be met."""
    met = {"verdict": "met", "delta": 0.3, "low": 0.2, "high": 0.4}
    still_open = {"verdict": "undecided", "delta": -0.0625, "low": -0.3, "high": 0.25}
    decision = decided(with_rows(found, met, still_open), verdict="undecided")
    assert "neither met nor missed (" in decision.sentence
    assert "-6.25 [-30.00, +25.00] points" in decision.sentence
    assert "30.00 [" not in decision.sentence


def test_a_plateau_is_called_one(found: StageResults) -> None:
    """The difference of a runner-up that is as good, and who else is."""
    similar = tuple(
        SimilarStep(step=step, delta=-0.01, low=-0.03, high=0.01, p=0.5) for step in (40, 50)
    )
    runner_up = RunnerUp(step=40, verdict="met", why="not significantly different")
    decision = decided(found, similar=similar, runner_up=runner_up)
    assert decision.runner_up == (
        "step 40, not significantly different (accuracy -1.00 [-3.00, +1.00] points "
        "from the one to take); likewise step 50"
    )
    assert decision.intervals == (
        "95 % intervals of the changes hold for all 3 checkpoints at once, as one was chosen among them"
    )


def test_stages_of_the_same_bridge_name_each_other(found: StageResults) -> None:
    """The latest stage is called so; the later of two names the command that compares them."""
    found = replace(found, deleted=())
    again = replace(found, plan=replace(found.plan, name="again"))
    decisions = stage_decisions({"second": found, "again": again})
    assert {name: decision.place for name, decision in decisions.items()} == {
        "again": "the latest stage; beside second, with the same bridge",
        "second": "beside again, with the same bridge",
    }
    assert found.chosen is not None
    folders = [stage.plan.step_folder(found.chosen) for stage in (again, found)]
    assert decisions["second"].open == ()
    assert decisions["again"].open == (
        "again and second have the same bridge, and are not compared here: python -m evaluation "
        f"compare {' '.join(shlex.quote(str(folder)) for folder in folders)}",
    )


def test_another_bridge_than_the_recommended_step(
    found: StageResults, reported: dict[str, StagePlan]
) -> None:
    first = read_stage(reported["first"], (100,))
    assert found.recommendation is not None
    for step, verdict, said in [
        (100, "met", None),
        (200, "undecided", None),
        (
            200,
            "met",
            "all changes are against first/100, though step 200 of first is recommended; how this "
            "stage would go on from there is not measured",
        ),
    ]:
        advised = found.recommendation.model_copy(update={"step": step, "verdict": verdict})
        stages = {"first": replace(first, recommendation=advised), "second": found}
        decision = stage_decisions(stages)["second"]
        assert decision.other_bridge == said
