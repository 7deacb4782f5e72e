"""The decision at the head of a page: what it says follows from the stage's files."""

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from evaluation.reporting.pages.decision import NO_RISK, stage_decision, stage_decisions
from evaluation.reporting.tables.stage_results import StageResults, read_stage
from evaluation.results.objective_rows import RecipeRow
from evaluation.results.stage_files import RunnerUp, SimilarStep
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
    decision = stage_decision(found)
    assert decision is not None
    assert found.recommendation is not None
    gains = {
        step: found.judged(step).objectives[0].gain
        for step in found.deltas
        if step != found.recommendation.step
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
    candidate = found.recommendation.step
    assert candidate is not None
    judged = found.judged(candidate)
    row = judged.objectives[0].model_copy(
        update={"low": -0.031, "regressions": ("quiz",), "recipe": None}
    )
    verdicts = {candidate: judged.model_copy(update={"objectives": (row,)})}
    decision = stage_decision(replace(found, verdicts={**found.verdicts, **verdicts}, deleted=()))
    assert decision is not None
    assert decision.risks == (
        f"{row.definition.words} may be worse by as much as 3.10 points",
        "significantly worse: quiz",
    )


@pytest.mark.parametrize(
    ("share", "advice"),
    [
        (0.0, "More questions, rather than more checkpoints, would"),
        (0.5, "More questions, and more checkpoints or runs, would"),
        (0.7, "More checkpoints or runs, rather than more questions, would"),
    ],
)
def test_advice_on_the_recipe_follows_from_its_width(
    found: StageResults, share: float, advice: str
) -> None:
    recipe = RecipeRow(
        low=-0.1,
        high=0.2,
        se_checkpoints=0.0,
        share_checkpoints=share,
        checkpoints=3,
        verdict="undecided",
        sentence="open",
    )
    decision = stage_decision(_with_rows(found, {"recipe": recipe}))
    assert decision is not None
    assert decision.recipe[1].startswith(advice)


def test_an_undecided_stage_is_told_by_its_undecided_objective(found: StageResults) -> None:
    """Not by the headline, which may be met."""
    assert found.recommendation is not None
    met = {"verdict": "met", "delta": 0.3, "low": 0.2, "high": 0.4}
    still_open = {"verdict": "undecided", "delta": -0.0625, "low": -0.3, "high": 0.25}
    stage = _with_rows(found, met, still_open)
    assert stage.recommendation is not None
    changed = stage.recommendation.model_copy(update={"verdict": "undecided"})
    decision = stage_decision(replace(stage, recommendation=changed))
    assert decision is not None
    assert "neither met nor missed (" in decision.sentence
    assert "-6.25 [-30.00, +25.00] points" in decision.sentence
    assert "30.00 [" not in decision.sentence


def _with_rows(found: StageResults, *updates: dict[str, Any]) -> StageResults:
    """Return a stage whose candidate has as many objectives, all like its first one but for the updates."""
    assert found.recommendation is not None
    candidate = found.recommendation.step
    assert candidate is not None
    judged = found.judged(candidate)
    rows = tuple(judged.objectives[0].model_copy(update=update) for update in updates)
    verdicts = {candidate: judged.model_copy(update={"objectives": rows})}
    return replace(found, verdicts={**found.verdicts, **verdicts}, deleted=())


def test_what_an_interval_does_not_show_is_a_risk_too(found: StageResults) -> None:
    """What is known of the recipe, a folder that is gone; else the page says that nothing is worse."""
    assert found.recommendation is not None
    candidate = found.recommendation.step
    assert candidate is not None
    judged = found.judged(candidate)
    recipe = RecipeRow(
        low=-0.1,
        high=0.2,
        se_checkpoints=0.1,
        share_checkpoints=0.9,
        checkpoints=3,
        verdict="undecided",
        sentence="open",
    )
    row = judged.objectives[0].model_copy(update={"low": 0.01, "recipe": recipe, "regressions": ()})
    verdicts = {candidate: judged.model_copy(update={"objectives": (row,)})}
    decision = stage_decision(replace(found, verdicts=verdicts, deleted=(candidate,)))
    assert decision is not None
    change = row.definition.change(row.delta, -0.1, 0.2)
    assert decision.risks == (
        "its folder no longer exists",
        NO_RISK,
    )
    assert decision.recipe == (
        "the verdicts above are about these weights. With the noise between checkpoints, for one "
        f"checkpoint: {row.definition.words} {change} (undecided)",
        f"More checkpoints or runs, rather than more questions, would decide {row.definition.words} of "
        "the recipe",
    )
    row = row.model_copy(update={"recipe": None})
    verdicts = {candidate: judged.model_copy(update={"objectives": (row,)})}
    decision = stage_decision(replace(found, verdicts=verdicts, deleted=()))
    assert decision is not None
    assert (decision.risks, decision.recipe) == ((NO_RISK,), ())


def test_a_plateau_is_called_one(found: StageResults) -> None:
    """The difference of a runner-up that is as good, and who else is."""
    content = found.recommendation
    assert content is not None
    similar = tuple(
        SimilarStep(step=step, delta=-0.01, low=-0.03, high=0.01, p=0.5) for step in (40, 50)
    )
    runner_up = RunnerUp(step=40, verdict="met", why="not significantly different")
    changed = content.model_copy(update={"similar": similar, "runner_up": runner_up})
    decision = stage_decision(replace(found, recommendation=changed))
    assert decision is not None
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
