"""What a list of checkpoints calls them stands in tables, pages and terminals, next to the step."""

from dataclasses import replace

from evaluation.dependencies.keys import tables_parts
from evaluation.dependencies.places import Place
from evaluation.reporting.pages.provenance import jobs_table
from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.summary import write_tables
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.reporting.terminal import bridge_table
from evaluation.results.stage_files import read_summary
from evaluation.settings.checkpoint_folders import ListedCheckpoint
from evaluation.settings.plan import StagePlan
from tests.reporting.pages import STEPS, page_data, write_report


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
    write_tables(found)
    rows = read_summary(plan.results / "summary.parquet")
    assert {(row["step"], row["role"], row["name"]) for row in rows} == {
        (10, "step", "lr 3e-4 | <b>"),
        (20, "step", None),
        (30, "step", None),
        (100, "bridge", None),
    }
    assert "| step 10 (lr 3e-4 \\| &lt;b&gt;) |" in (plan.results / "summary.md").read_text()
    assert "\n10 (lr 3e-4 | <b>)  " in bridge_table({"second": named})
    page = plan.results / "report.html"
    page.write_text(stage_page(found, write_quality(found)))
    assert "10 (lr 3e-4 | &lt;b&gt;)" in page.read_text()
    assert {"10 (lr 3e-4 | <b>)", "20"} < {row[0] for row in jobs_table(found).rows}
    assert page_data(page)["names"] == {"10": "lr 3e-4 | <b>"}


def test_other_tables_and_keys_stay_as_they_are(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    parts = [tables_parts(Place(plan.results, (one,)), ()) for one in (plan, with_names(plan))]
    assert "names" not in parts[0]
    assert parts[1] == {**parts[0], "names": {10: "lr 3e-4 | <b>"}}
    assert "names" not in page_data(write_report(plan, STEPS))
