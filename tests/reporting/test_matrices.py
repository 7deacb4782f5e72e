"""The score matrix of a stage and what later stages kept: the files, and that they agree with others."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.tables.retention import landmarks, retention
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.results.outputs import FRONT_FILES, stage_outputs
from evaluation.settings.names import SHARED_FILES
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import write_side
from tests.reporting.pages import STEPS, page_data, write_report


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_score_matrix_holds_values_and_deltas(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    write_report(plan, STEPS)
    rows = {(row["tier"], row["item"]): row for row in rows_of(plan.results / "score_matrix.csv")}
    for step in STEPS:
        folder = plan.step_folder(step)
        stored = json.loads((folder / "bridge_deltas.json").read_text())["deltas"]
        shown = [d for d in stored if d["metric"] in ("delta_ppl", "delta_acc")]
        assert {("tier2", "web"), ("tier3", "overall")} <= {(d["tier"], d["item"]) for d in shown}
        for delta in shown:
            row = rows[delta["tier"], delta["item"]]
            assert float(row[f"step {step} value"]) == pytest.approx(delta["value"])
            assert float(row[f"step {step} delta"]) == pytest.approx(delta["delta"])
            assert row[f"step {step} flag"] == delta["flag"]
            assert float(row["bridge value"]) == pytest.approx(delta["bridge_value"])
    assert "step 30 delta" in rows["tier3", "quiz"]


def test_the_heat_map_is_blue_where_it_is_better(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    write_report(plan, STEPS)
    lines = (plan.results / "score_matrix.tex").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("% \\usepackage{booktabs")
    assert lines[2] == r"\begin{tabular}{lrrrr}"
    quiz = next(line for line in lines if line.startswith("quiz"))
    cells = quiz.removesuffix(r" \\").split(" & ")
    assert "cellcolor" not in cells[1]  # the bridge itself
    tints = [cell.split("{")[1].split("}")[0] for cell in cells[2:]]
    blue = [int(tint[4:], 16) - int(tint[:2], 16) for tint in tints]
    assert blue == sorted(blue)  # each step gains more
    assert blue[0] > 0
    assert r"$^{\blacktriangle}$" in cells[-1]


@pytest.fixture
def three(plans: dict[str, StagePlan]) -> dict[str, StagePlan]:
    """The second stage's bridge is the first one's last checkpoint, which it scored itself, too."""
    first, second = plans["first"], plans["second"]
    identity = {"checkpoint_identity": "shared", "checkpoint": "/ckpts/first/100"}
    write_side(first.step_folder(100), first, step=100, **identity)
    write_side(second.bridge_folder, second, step=100, **identity)
    for plan, steps in ((first, (100,)), (second, STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
    return plans


def test_retention_is_the_paired_delta(three: dict[str, StagePlan]) -> None:
    """One checkpoint with two folders of results is one column; pairs agree with the bridge's."""
    found = [read_stage(three["first"], (100,)), read_stage(three["second"], STEPS)]
    assert [(one.label, len(one.sides)) for one in landmarks(found)] == [
        ("first/100", 2),
        ("second/30", 1),
    ]
    rows = {(row.tier, row.item, row.metric): row for row in retention(found)}
    stored = found[1].deltas[30].deltas
    assert {(d.tier, d.item, d.metric) for d in stored} == {
        (tier, item, f"delta_{metric}") for tier, item, metric in rows
    }
    for delta in stored:
        row = rows[delta.tier, delta.item, delta.metric.removeprefix("delta_")]
        assert (row.earlier_value, row.value) == (delta.bridge_value, delta.value)
        assert (row.delta, row.low, row.high) == (delta.delta, delta.low, delta.high)


def test_items_of_other_data_are_not_compared(three: dict[str, StagePlan]) -> None:
    for folder in (three["second"].bridge_folder, three["second"].step_folder(30)):
        path = folder / "tier3_cf.json"
        content = json.loads(path.read_text())
        del content["tasks"]["exam"]
        path.write_text(json.dumps(content))
    path = three["first"].step_folder(100) / "tier3_cf.json"
    content = json.loads(path.read_text())
    content["tasks"]["quiz"]["data_checksum"] = {"examples.jsonl": "other"}
    path.write_text(json.dumps(content))
    shutil.rmtree(three["second"].bridge_folder)
    found = [read_stage(three["first"], (100,)), read_stage(three["second"], STEPS)]
    assert {row.item for row in retention(found) if row.tier == "tier3"} == set()


def test_the_front_page_writes_what_was_kept(three: dict[str, StagePlan]) -> None:
    page = three["first"].results.parent / "report.html"
    write_front_page(three, page)
    rows = rows_of(page.with_name("retention.csv"))
    data = page_data(page)["retention"]
    assert data["labels"] == ["first/100", "second/30"]
    assert len(data["rows"]) == len(rows) > 10
    text = page.with_name("retention.tex").read_text(encoding="utf-8")
    assert r"& first/100 & second/30 \\" in text
    assert r"\cellcolor" in text


def test_every_output_is_declared(plans: dict[str, StagePlan]) -> None:
    """What `tables` writes is what Snakemake and status ask for; no stage may be called like one."""
    plan = plans["second"]
    write_report(plan, STEPS)
    written = {path.name for path in plan.results.iterdir() if path.is_file()}
    assert written == set(stage_outputs(plan))
    assert set(FRONT_FILES) <= set(SHARED_FILES)
