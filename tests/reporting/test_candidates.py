"""Candidates by rank: their order, their numbers and their forest plots follow from the stage's files."""

import json
from dataclasses import replace

import pytest

from evaluation.reporting.pages.candidates import WIDTH, candidate_table, ranked
from evaluation.reporting.tables.stage_results import StageResults, read_stage
from evaluation.settings.plan import StagePlan
from tests.reporting.pages import STEPS


@pytest.fixture(scope="module")
def found(reported: dict[str, StagePlan]) -> StageResults:
    return read_stage(reported["second"], STEPS)


def test_every_candidate_has_a_row_the_recommended_one_the_first(found: StageResults) -> None:
    stored = json.loads((found.plan.results / "recommendation.json").read_text())
    table = candidate_table(found)
    assert table is not None
    assert [row.rank for row in table.rows] == [1, 2, 3]
    assert sorted(row.step for row in table.rows) == list(STEPS)
    assert [row.is_chosen for row in table.rows] == [True, False, False]
    assert table.rows[0].step == stored["step"]
    assert table.rows[0].reason == stored["kind"]
    reasons = {one["step"]: one["why"] for one in stored["others"]}
    assert {row.step: row.reason for row in table.rows[1:]} == reasons


def test_the_order_is_by_the_rule_that_names_the_first(found: StageResults) -> None:
    """Verdicts before gains, and what is recommended before both; the second one is the runner-up."""
    assert found.recommendation is not None
    assert found.recommendation.runner_up is not None
    assert ranked(found) == [30, 20, 10]
    assert ranked(found)[1] == found.recommendation.runner_up.step
    judged = {step: found.judged(step) for step in STEPS}
    verdicts = {
        **judged,
        20: judged[20].model_copy(update={"verdict": "undecided"}),
    }
    assert ranked(replace(found, verdicts=verdicts)) == [30, 10, 20]
    advised = found.recommendation.model_copy(update={"step": 10})
    assert ranked(replace(found, recommendation=advised)) == [10, 30, 20]


def test_a_forest_plot_shows_the_interval_on_one_scale(found: StageResults) -> None:
    """Places are linear in the change: two candidates' lines can be compared by eye."""
    table = candidate_table(found)
    assert table is not None
    for column, head in enumerate(table.heads):
        objectives = [found.judged(row.step).objectives[column] for row in table.rows]
        cells = [row.cells[column] for row in table.rows]
        places, changes = [head.zero], [0.0]
        for cell, objective in zip(cells, objectives, strict=True):
            assert None not in (objective.low, objective.high, cell.low, cell.high)
            places += [cell.low, cell.place, cell.high]
            changes += [objective.low, objective.delta, objective.high]
            said = objective.definition.change(objective.delta, objective.low, objective.high)
            assert cell.change == said.removesuffix(f" {objective.definition.change_unit}")
        assert min(places) >= 0
        assert max(places) <= WIDTH
        scale = (places[1] - places[0]) / changes[1]
        assert [scale * change + head.zero for change in changes] == pytest.approx(places, abs=0.2)
        if objectives[0].margin:
            assert head.mark == pytest.approx(head.zero + scale * 0.02, abs=0.2)


def test_nothing_is_ranked_without_a_bridge(reported: dict[str, StagePlan]) -> None:
    assert candidate_table(read_stage(reported["first"], (100,))) is None
