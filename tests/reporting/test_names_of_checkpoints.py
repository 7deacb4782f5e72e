"""What a list of checkpoints calls them stands in tables, pages and terminals, next to the step."""

from dataclasses import replace

from evaluation.reporting.pages.provenance import jobs_table
from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.table import stage_rows
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.reporting.terminal import bridge_table
from evaluation.settings.checkpoint_folders import ListedCheckpoint
from evaluation.settings.plan import StagePlan
from tests.reporting.pages import STEPS, page_data


def with_names(plan: StagePlan) -> StagePlan:
    listed = (
        ListedCheckpoint(path="/a", step=10, name="lr 3e-4 | <b>"),
        ListedCheckpoint(path="/b", step=20, name=None),
    )
    return replace(plan, stage=plan.stage.model_copy(update={"given": listed}))


def test_names_are_shown(plans: dict[str, StagePlan]) -> None:
    plan, named = plans["second"], with_names(plans["second"])
    assert [named.label(one) for one in (10, 20)] == [
        "step 10 (lr 3e-4 | <b>)",
        "step 20",
    ]
    found = read_stage(named, STEPS)
    assert {(row["step"], row["checkpoint"]) for row in stage_rows(found, {})} == {
        (10, "step 10 (lr 3e-4 | <b>)"),
        (20, "step 20"),
        (30, "step 30"),
        (100, "bridge"),
    }
    assert "\n10 (lr 3e-4 | <b>)  " in bridge_table({"second": named})
    page = plan.results / "report.html"
    page.write_text(stage_page(found, write_quality(found)))
    assert "10 (lr 3e-4 | &lt;b&gt;)" in page.read_text()
    assert {"10 (lr 3e-4 | <b>)", "20"} < {row[0] for row in jobs_table(found).rows}
    assert page_data(page)["names"] == {"10": "lr 3e-4 | <b>"}
