"""A page: its numbers are the table's, its decision a phrase, its size what Snakemake's report opens."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from evaluation.reporting.decision import decision_lines, decision_row, in_use
from evaluation.reporting.figures import write_figures
from evaluation.reporting.judged_stage import JudgedStage, read_stage
from evaluation.reporting.page import LARGEST, stage_page
from evaluation.reporting.report import report_run, report_stage
from evaluation.results.deltas_file import ObjectiveRow
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import OtherRun, PublishedScores
from tests.bridge.folders import edited, make_plans, write_side
from tests.reporting.frames import long_table
from tests.reporting.pages import page_data, write_report, write_results

SMALL: dict[str, Any] = {"items": 60, "blocks": 20, "prompts": 12}
KEYS = ("checkpoint", "tier", "item", "metric")


@pytest.mark.parametrize("name", ["report.html", "first/report.html", "second/report.html"])
def test_every_number_of_a_page_is_its_cell_of_the_table(written: Path, name: str) -> None:
    stages = ("first", "second")
    tables = {
        (stage, *(row[key] for key in KEYS)): row
        for stage in stages
        for row in pq.read_table(written / stage / "summary.parquet").to_pylist()
        if row["position"] is None
    }
    shown = page_data(written / name)["table"]
    assert len(shown) > 5
    for row in shown:
        stored = tables[row["stage"], *(row[key] for key in KEYS)]
        for column in set(row) - {"total"}:
            cell = stored[column]
            known = float(f"{cell:.6g}") if isinstance(cell, float) else cell
            assert row[column] == known, column
    if name != "report.html":
        heads = {key[1:] for key, row in tables.items() if key[0] in name and row["primary"]}
        headlines = {key for key in heads if key[1] != "tier4" or key[3].startswith("all_")}
        assert headlines <= {tuple(row[key] for key in KEYS) for row in shown}


def judged(root: Path, **how: Any) -> JudgedStage:
    plans = write_results(root, **SMALL, **how)
    for plan in plans.values():
        report_stage(plan, plans)
    return read_stage(plans["second"], plans)


PHRASES = [
    ({"gain": 2.0}, "Take 30"),
    ({"gain": -2.0}, "Stay on 100"),
    ({"gain": 0.01}, "Can't tell; "),
    ({"objective": []}, "No objective set"),
]


@pytest.mark.parametrize(("how", "phrase"), PHRASES)
def test_what_to_do_is_one_of_five_phrases(
    tmp_path: Path, how: dict[str, Any], phrase: str
) -> None:
    stage = judged(tmp_path, **how)
    row = decision_row(stage)
    assert row.do.startswith(phrase)
    assert bool(row.path) == row.do.startswith("Take")
    assert {line.verdict for line in row.gained} <= {"met", "not met", "undecided"}
    text = "\n".join(decision_lines(row))
    assert all(line.text in text for line in (*row.gained, *row.kept))
    assert all(line.text.replace("'", "&#39;") for line in row.gained)


def test_missing_results_are_waited_for_and_named(tmp_path: Path) -> None:
    plans = write_results(tmp_path, **SMALL)
    later = make_plans(tmp_path, steps=(10, 20, 30, 40))["second"]
    later.checkpoint(40).mkdir(parents=True)
    page = write_report(later).read_text()
    row = decision_row(read_stage(later, plans))
    assert row.do == "Wait: 1 of 4 missing"
    assert any("step 40" in problem for problem in row.warnings)
    assert "tier3_cf.json missing: step 40" in page


def test_a_stage_without_any_result_has_a_page(tmp_path: Path) -> None:
    plans = make_plans(tmp_path)
    for plan in plans.values():
        report_stage(plan, plans)
    report_run(plans)
    page = (plans["second"].results / "report.html").read_text()
    assert "Wait: 3 of 3 missing" in page
    assert "tier3_cf.json missing: step 10, step 20, step 30, bridge" in page
    assert "second" in (tmp_path / "results" / "report.html").read_text()


OBJECTIVE: dict[str, Any] = {
    "tier": "tier2",
    "want": "keep",
    "group": None,
    "margin": 0.0198,
    "verdict": "met",
    "metric": "delta_nats_per_token",
    "items": ("web",),
    "mde": None,
    "regressions": (),
    "value": 1.0,
    "bridge_value": 1.0,
    "delta": 0.004,
    "low": -0.002,
    "high": 0.0109,
    "why": "",
}
OF_TASKS = {"tier": "tier3", "metric": "delta_acc", "want": "improve", "group": "core"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "perplexity +0.4 %, at worst +1.1 %, allowed 2.0 %"),
        (
            {**OF_TASKS, "delta": 0.0698, "low": -0.0112, "high": 0.15, "margin": 0.0},
            "accuracy of core +7.0 points, at worst −1.1 points, any gain wanted",
        ),
        ({"low": None, "high": None, "why": "3 blocks"}, "no interval (3 blocks), allowed 2.0 %"),
    ],
)
def test_numbers_are_in_units_of_use(changes: dict[str, Any], text: str) -> None:
    assert in_use(ObjectiveRow.model_validate({**OBJECTIVE, **changes})).endswith(text)


def test_a_row_doubts_what_is_worse_truncated_or_from_another_bridge(tmp_path: Path) -> None:
    stage = judged(tmp_path)
    frame = stage.frame.copy()
    chosen = (
        (frame["step"] == stage.chosen) & (frame["item"] == "exam") & (frame["metric"] == "acc")
    )
    columns = ["delta", "mde", "flag"]
    frame.loc[chosen, columns] = [-0.08, 0.02, "worse"]
    cut = frame[chosen].assign(metric="truncated_rate", tier="tier4", value=0.3, primary=False)
    both = pd.concat([frame, cut])
    row = decision_row(
        replace(stage, frame=both, advised_bridge="first/50", problems=("a failed",))
    )
    assert "significantly worse: exam −8.0 points" in row.doubt
    assert row.warnings == (
        "the bridge is first/100, but first/50 is recommended",
        "30 % of answers to exam are truncated",
        "a failed",
    )


def test_what_would_decide_is_a_number_to_plan_with(tmp_path: Path) -> None:
    (row,) = [
        text for text in decision_row(judged(tmp_path, gain=0.01)).doubt if "questions" in text
    ]
    assert row.startswith("1.0 points would need about ")
    assert row.endswith("of Ranked choices, now 120")


def test_a_damaged_file_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    plans = write_results(tmp_path, **SMALL)
    path = plans["second"].step_folder(20) / "tier3_cf.json"
    path.write_text("{")
    page = write_report(plans["second"]).read_text()
    assert str(path) in page
    steps = {row["step"] for row in page_data(plans["second"].results / "report.html")["table"]}
    assert steps == {10, 20, 30, 100}


def test_a_command_that_gives_no_single_scores_has_a_page(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, tiers=("slices", "tasks"), command="launch", steps=(10,))
    plan = plans["second"]
    for folder, step in ((plan.bridge_folder, 100), (plan.step_folder(10), 10)):
        write_side(folder, plan, step=step, per_item=False, protocol="external: launch")
    write_report(plan)
    rows = page_data(plan.results / "report.html")["table"]
    assert {row["delta_low"] for row in rows} == {None}
    assert {row["checkpoint"] for row in rows} == {"step 10", "bridge"}


def drawn_stage(plan: StagePlan, frame: pd.DataFrame) -> JudgedStage:
    return JudgedStage(plan=plan, frame=frame, recommendation=None, deltas={})


def test_a_page_of_52_checkpoints_and_40_items_opens_in_snakemakes_report(tmp_path: Path) -> None:
    plan = make_plans(tmp_path)["second"]
    frame = long_table(range(1000, 53000, 1000), items=13)
    page = stage_page(drawn_stage(plan, frame))
    assert len(page.encode()) < LARGEST
    more = long_table(range(1000, 203000, 1000), items=13)
    page = stage_page(drawn_stage(plan, more))
    assert len(page.encode()) < LARGEST
    assert "of 202 checkpoints are shown here; summary.csv has all" in page


def test_texts_of_others_are_texts_in_a_page(tmp_path: Path) -> None:
    odd = "</script><!--<script>alert(1)</script> \x1b[31m"
    plan = make_plans(tmp_path)["second"]
    frame = long_table().assign(note=odd)
    frame.loc[frame["item"] == "tier3_0", "item"] = odd
    stage = replace(drawn_stage(plan, frame), problems=(f"{odd} \ud83d",))
    page = stage_page(stage)
    page.encode()
    assert "<script>alert" not in page
    (tmp_path / "page.html").write_text(page)
    assert any(odd[:30] in row["item"] for row in page_data(tmp_path / "page.html")["table"])


def test_figures_are_those_that_were_drawn(tmp_path: Path) -> None:
    plan = make_plans(tmp_path)["second"]
    plan.figures_folder.mkdir(parents=True)
    (plan.figures_folder / "tier3_old.svg").touch()
    write_figures(drawn_stage(plan, long_table()))
    assert "tier3_0" in (plan.figures_folder / "tier3_forest.svg").read_text()
    assert not (plan.figures_folder / "tier3_old.svg").exists()


def test_models_that_were_scored_once_are_lines(tmp_path: Path) -> None:
    plans = write_results(tmp_path, **SMALL)
    plan, public = plans["second"], tmp_path / "public"
    write_side(public, plan, step=0, seed=9, **SMALL)
    with edited(public / "tier2_ppl.json") as content:
        content["protocol"] = "test-2"
    more = {
        "runs": {"public": OtherRun(path=str(public))},
        "references": {"paper": PublishedScores(source="a paper", scores={"quiz": 0.5})},
    }
    plan = replace(plan, config=plan.config.model_copy(update=more))
    rows = page_data(write_report(plan))["table"]
    lines = {
        (row["checkpoint"], row["tier"], row["item"]): row["value"]
        for row in rows
        if row["role"] == "reference"
    }
    assert lines["paper (published)", "tier3", "quiz"] == 0.5
    file = json.loads((public / "tier3_cf.json").read_text())
    quiz = float(f"{file['tasks']['quiz']['accuracy']:.6g}")
    assert lines["public", "tier3", "quiz"] == quiz
    assert not any(tier == "tier2" for _, tier, _ in lines)
    assert "public has no line in tier2" in (plan.results / "report.html").read_text()


def test_loss_by_position_is_drawn_for_the_chosen_step(tmp_path: Path) -> None:
    plans = write_results(tmp_path, tiers=("slices",), sequence_length=2048, objective=[], **SMALL)
    plan: StagePlan = plans["second"]
    data = page_data(write_report(plan))
    assert {row["checkpoint"] for row in data["positions"]} <= {"step 30", "bridge"}
