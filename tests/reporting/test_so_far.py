"""What tables and pages show of steps that are to come, and of deleted checkpoints."""

import json
import shutil
from dataclasses import replace

import pytest

from evaluation.bridge.write import write_stage
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.status import stage_status, status_table
from evaluation.reporting.terminal import advice_lines
from evaluation.results.deltas_file import StageDeltas
from evaluation.results.stage_files import Recommendation
from evaluation.settings.plan import StagePlan
from tests.reporting.pages import STEPS, rows_of, write_report

AWAITED = (*STEPS, 40, 50)


@pytest.fixture
def plan(plans: dict[str, StagePlan]) -> StagePlan:
    """Three of five steps are scored; the checkpoint of the first is deleted."""
    plan = plans["second"]
    shutil.rmtree(plan.stage.checkpoints, ignore_errors=True)
    for step in STEPS[1:]:
        plan.checkpoint(step).mkdir(parents=True)
        (plan.checkpoint(step) / "config.json").write_text("{}")
    write_stage(plan, STEPS, AWAITED)
    return plan


def test_a_verdict_is_provisional_until_all_steps_are_in(plan: StagePlan) -> None:
    recommendation = Recommendation.read(plan.results / "recommendation.json")
    deltas = StageDeltas.read(plan.results / "bridge_deltas.json")
    for found in (recommendation, deltas):
        assert (found.provisional, found.awaited) == (True, (40, 50))
    words = "(provisional, until step 40, 50 are in)"
    assert advice_lines(plan)[0].startswith(f"recommended {words}: step 30 — ")
    assert words in write_report(plan, AWAITED).read_text()
    status = stage_status(plan, AWAITED)
    assert (status["verdict"], status["provisional"]) == ("met", True)
    assert "second: incomplete; met, provisional" in status_table({"second": status})
    front = write_front_page({"second": plan})
    assert words.split(",")[0] in front.read_text()
    assert "provisional" in front.with_name("overview.rst").read_text()


def test_and_holds_when_they_are(plan: StagePlan) -> None:
    write_stage(plan, STEPS, STEPS)
    recommendation = json.loads((plan.results / "recommendation.json").read_text())
    assert (recommendation["provisional"], recommendation["awaited"]) == (False, [])
    assert advice_lines(plan)[0].startswith("recommended: step 30 — ")
    assert "provisional" not in write_report(plan, STEPS).read_text()


def test_a_deleted_checkpoint_is_marked(plan: StagePlan) -> None:
    text = write_report(plan, STEPS).read_text()
    assert "Deleted since they were scored: step 10." in text
    rows = [row for row in rows_of(plan.results / "summary.csv") if row["role"] == "step"]
    marked = {(row["step"], row["deleted"]) for row in rows}
    assert marked == {("10", "True"), ("20", "False"), ("30", "False")}
    lines = status_table({"second": stage_status(plan, AWAITED)}).splitlines()
    assert [line.split("  ")[1].strip() for line in lines if "deleted" in line] == ["10 (deleted)"]


def test_a_stage_without_checkpoints_is_shown_as_one(plans: dict[str, StagePlan]) -> None:
    first = plans["first"]
    stage = first.stage.model_copy(update={"steps": "all", "given": "/none"})
    page = write_front_page({"first": replace(first, stage=stage)})
    assert "no results yet" in page.read_text()
