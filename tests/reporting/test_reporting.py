"""Tables, status, comparison and pages, from whole and from broken results."""

import csv
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.errors import BridgeError
from evaluation.reporting.compare import compare_folders
from evaluation.reporting.report import write_front_page, write_stage_report
from evaluation.reporting.status import stage_status, status_table
from evaluation.reporting.tables import SCHEMA, write_tables
from evaluation.reporting.terminal import bridge_table
from evaluation.settings.plan import StagePlan
from evaluation.store import write_jsonl
from tests.bridge.folders import make_plans, write_side

STEPS = (10, 20, 30)


@pytest.fixture
def plans(tmp_path: Path) -> dict[str, StagePlan]:
    """Both stages scored, the second one compared with its bridge."""
    plans = make_plans(tmp_path)
    first, second = plans["first"], plans["second"]
    write_side(first.step_folder(100), first, step=100)
    write_side(second.bridge_folder, second, step=100)
    for step in STEPS:
        write_side(second.step_folder(step), second, step=step, skill=step / 20, seed=step)
        write_deltas(second, step)
    write_stage(second, STEPS)
    return plans


def page_data(page: Path) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_columns_are_stable() -> None:
    assert ",".join(SCHEMA.names) == (
        "stage,step,role,tier,item,group,metric,value,low,high,chance,n,"
        "delta,delta_low,delta_high,p_holm,mde,verdict,step_verdict"
    )


def test_summary_holds_what_the_tiers_hold(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    write_tables(plan, STEPS)
    rows = pq.read_table(plan.results / "summary.parquet").to_pylist()
    found = {(r["role"], r["step"], r["item"], r["metric"]): r for r in rows}
    tier2 = json.loads((plan.step_folder(20) / "tier2_ppl.json").read_text(encoding="utf-8"))
    web = found["step", 20, "web", "ppl"]
    assert web["value"] == tier2["slices"]["web"]["ppl"]
    assert web["low"] < web["value"] < web["high"]
    assert found["step", 20, "overall", "ppl"]["value"] == pytest.approx(tier2["overall"]["ppl"])
    tier3 = json.loads((plan.step_folder(20) / "tier3_cf.json").read_text(encoding="utf-8"))
    assert found["step", 20, "overall", "acc"]["value"] == tier3["overall"]["accuracy"]
    assert found["step", 20, "quiz", "acc"]["verdict"] == "better"
    assert found["step", 20, "quiz", "acc"]["chance"] == 0.25
    assert found["bridge", 100, "quiz", "acc"]["delta"] is None
    with open(plan.results / "summary.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["item"] for line in lines] == [row["item"] for row in rows]
    text = (plan.results / "summary.md").read_text(encoding="utf-8")
    assert "Recommended: step 30" in text
    assert "| web |" in text


def test_a_stage_without_a_bridge(plans: dict[str, StagePlan]) -> None:
    plan = plans["first"]
    write_tables(plan, (100,))
    rows = pq.read_table(plan.results / "summary.parquet").to_pylist()
    assert rows
    assert all(row["delta"] is None for row in rows)
    write_stage_report(plan, (100,), plan.results / "report.html")
    text = (plan.results / "report.html").read_text(encoding="utf-8")
    assert "has no bridge" in text
    assert len(page_data(plan.results / "report.html")["series"][0]["points"]) == 1


def test_page_carries_series_deltas_and_flips(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    question = {
        "id": "quiz/0",
        "contexts": [{"text": "</script><b>Why?"}],
        "candidates": [{"context": 0, "text": f" answer {i}"} for i in range(4)],
    }
    rows = [{**question, "id": f"quiz/{i}"} for i in range(400)]
    write_jsonl(plan.task_folder("quiz") / "examples.jsonl", rows)
    page = plan.results / "report.html"
    write_stage_report(plan, STEPS, page)
    data = page_data(page)
    curve = next(s for s in data["series"] if (s["item"], s["metric"]) == ("quiz", "acc"))
    assert [point["step"] for point in curve["points"]] == [10, 20, 30]
    assert curve["bridge"]["value"] < curve["points"][-1]["value"]
    assert curve["spread"]["steps"] == 3
    flip = next(f for f in data["flips"] if f["task"] == "quiz" and f["gained"])
    assert flip["text"] == "</script><b>Why?"
    assert flip["candidates"][0]["gold"]
    assert "this step" in flip["candidates"][0]["chosen"]
    assert "bridge" not in flip["candidates"][0]["chosen"]
    assert any(f["task"].startswith("probes") and f["sides"][0][1] == "It." for f in data["flips"])
    text = page.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_front_page_joins_the_stages(plans: dict[str, StagePlan], tmp_path: Path) -> None:
    for plan, steps in ((plans["first"], (100,)), (plans["second"], STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
    write_front_page(plans, tmp_path / "index.html")
    data = page_data(tmp_path / "index.html")
    line = next(s for s in data["series"] if (s["item"], s["metric"]) == ("web", "ppl"))
    assert [point["x"] for point in line["points"]] == [100, 110, 120, 130]
    assert line["borders"] == [100]
    assert "Recommended: step 30" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_pages_and_tables_of_what_is_there(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    (plan.step_folder(20) / "tier3_cf.json").unlink()
    (plan.step_folder(20) / "bridge_deltas.json").unlink()
    for file in plan.step_folder(30).iterdir():
        file.unlink()
    write_tables(plan, STEPS)
    write_stage_report(plan, STEPS, plan.results / "report.html")
    text = (plan.results / "report.html").read_text(encoding="utf-8")
    for named in (
        "step 20: tier3_cf.json",
        "step 20: bridge_deltas.json",
        "step 30: tier2_ppl.json",
    ):
        assert named in text


def test_nothing_scored_yet(tmp_path: Path) -> None:
    plan = make_plans(tmp_path)["second"]
    write_tables(plan, STEPS)
    write_stage_report(plan, STEPS, plan.results / "report.html")
    assert page_data(plan.results / "report.html")["series"] == []
    assert pq.read_table(plan.results / "summary.parquet").num_rows == 0


def test_bridge_table(plans: dict[str, StagePlan]) -> None:
    text = bridge_table(plans)
    assert "first: no bridge" in text
    assert "second against second/100" in text
    assert re.search(r"^30 .* met$", text, re.MULTILINE)
    assert "recommended: step 30" in text


def test_status_tells_done_failed_running_and_missing(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    assert not stage_status(plan, STEPS)["complete"]
    write_tables(plan, STEPS)
    write_stage_report(plan, STEPS, plan.results / "report.html")
    assert stage_status(plan, STEPS)["complete"]
    logs = plan.results / "eval_logs" / "slurm"
    logs.mkdir(parents=True)
    for step, text in ((10, "12:00 INFO\nerror: no room\n"), (20, "12:00 INFO\n")):
        (plan.step_folder(step) / "tier2_ppl.json").unlink()
        (logs / f"second_step_{step}.log").write_text(text, encoding="utf-8")
    (plan.step_folder(30) / "tier2_ppl.json").unlink()
    found = stage_status(plan, STEPS)
    states = [found["subjects"][str(step)]["files"]["tier2"] for step in STEPS]
    assert states == ["failed", "running", "missing"]
    assert "no room" in status_table({"second": found})
    old = time.time() - 3600
    os.utime(logs / "second_step_20.log", (old, old))
    assert stage_status(plan, STEPS)["subjects"]["20"]["files"]["tier2"] == "missing"


def test_compare_two_folders(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    better, worse = plan.step_folder(30), plan.step_folder(10)
    text, is_worse = compare_folders(better, worse)
    assert not is_worse
    assert "quiz" in text
    assert compare_folders(worse, better)[1]
    with pytest.raises(BridgeError, match="no tier files"):
        compare_folders(plan.results, better)
