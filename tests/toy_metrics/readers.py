"""Look for metrics that were added to a copy of the package in all that is made of results.

python -m tests.toy_metrics.readers FOLDER
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import evaluation
from evaluation.reporting.comparison import folders_as_text
from evaluation.reporting.sharing.curves import export_curves
from evaluation.reporting.sharing.lm_eval_files import write_lm_eval_files
from evaluation.reporting.tables.figures import write_figures
from evaluation.runs.compare import compare_checkpoints, compare_runs
from evaluation.runs.find import find_run
from evaluation.runs.matching import Matching
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import edit_json
from tests.reporting.pages import page_data, rows_of, write_pages

ADDED = {
    "tier2": "tokens_per_byte",
    "tier3": "gold_nats",
    "tier4": "neat_rate",
    "tier5": "mean_characters",
}
PAIRS = set(ADDED.items())
STEP = 30


def pairs(rows: Any) -> set[tuple[str, str]]:
    """Tier and metric of rows, `delta_` left out."""
    return {(row["tier"], row["metric"].removeprefix("delta_")) for row in rows}


def tier_files(plan: StagePlan) -> None:
    folder = plan.step_folder(STEP)
    content = {name: json.loads((folder / TIERS[name].summary_file).read_text()) for name in ADDED}
    assert "tokens_per_byte" in content["tier2"]["slices"]["web"]
    assert "tokens_per_byte" in content["tier2"]["overall"]
    assert "gold_nats" in content["tier3"]["tasks"]["quiz"]
    assert "gold_nats" in content["tier3"]["overall"]
    assert content["tier4"]["summary"]["neat_rate"] is not None
    assert content["tier4"]["by_category"]["lists"]["neat_rate"] is not None
    assert content["tier5"]["generation_tasks"]["sums"]["mean_characters"] == 1.0
    table = pq.read_table(folder / TIERS["tier5"].items_file)
    assert "mean_characters" in table.column_names


def tables(plan: StagePlan) -> None:
    assert pairs(rows_of(plan.results / "summary.csv")) >= PAIRS
    assert pairs(pq.read_table(plan.results / "summary.parquet").to_pylist()) >= PAIRS
    assert pairs(rows_of(plan.results / "bridge_deltas.csv")) >= PAIRS
    deltas = json.loads((plan.step_folder(STEP) / "bridge_deltas.json").read_text())["deltas"]
    assert pairs(deltas) >= PAIRS
    of_items = PAIRS - {("tier4", "neat_rate")}  # few prompts: tiers of rates are left out
    assert pairs(rows_of(plan.results / "task_quality.csv")) >= of_items
    text = (plan.results / "summary.md").read_text()
    for tier, metric in PAIRS:
        assert f"## {tier}: {TIERS[tier].metric(metric).column}\n" in text, metric
    found = evaluation.load(plan.results.parent)
    assert pairs(found.summary.to_dict("records")) >= PAIRS
    assert pairs(found.deltas.to_dict("records")) >= PAIRS


def drawn(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    data = page_data(plan.results / "report.html")
    assert pairs(data["series"]) >= PAIRS
    assert pairs(data["deltas"]) >= PAIRS
    assert all(metric in data["tiers"][tier]["metrics"] for tier, metric in PAIRS)
    assert pairs(page_data(plan.results.parent / "report.html")["series"]) >= PAIRS
    write_figures(plan)
    for tier, metric in PAIRS:
        kind = "forest" if TIERS[tier].rates else "measures"
        assert metric in plan.figures[kind, tier].read_text(), metric


def compared(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    of_two = compare_checkpoints(plan.step_folder(STEP), plan.bridge_folder)
    text = folders_as_text(of_two)
    assert all(metric in text for metric in ADDED.values())
    results = plan.results.parent
    other = shutil.copytree(results, results.with_name("other"))
    runs = [find_run("a", results), find_run("b", other)]
    found = compare_runs(*runs, Matching()).model_dump()
    (second,) = (stage for stage in found["stages"] if stage["stage_a"] == "second")
    assert pairs(second["deltas"]) >= PAIRS


def exported(plans: dict[str, StagePlan], folder: Path) -> None:
    export_curves(list(plans.values()), folder / "curves")
    (events,) = (folder / "curves").iterdir()
    tags = {tier: f"eval/second/{tier}/".encode() for tier in ADDED}
    drawn = [(tags[tier], f"/{metric}".encode()) for tier, metric in PAIRS]
    assert all(re.search(tag + b"[^/]+" + name, events.read_bytes()) for tag, name in drawn)
    # The harness' files hold the questions of ranked tasks, too, which are not cached here.
    for path in (plans["second"].step_folder(STEP)).glob("tier3*"):
        path.unlink()
    (path,) = write_lm_eval_files([plans["second"]], [STEP], folder, "lab")
    assert all(
        f'"{metric},none"' in path.read_text() for metric in ("tokens_per_byte", "mean_characters")
    )


def absent(plan: StagePlan) -> None:
    """What one side did not store is not compared, which a note says."""
    path = plan.bridge_folder / TIERS["tier3"].units_file
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["gold_nats"]), path)
    content = json.loads((plan.bridge_folder / TIERS["tier3"].summary_file).read_text())
    for entry in content["tasks"].values():
        del entry["gold_nats"]
    edit_json(plan.bridge_folder / TIERS["tier3"].summary_file, tasks=content["tasks"])
    found = compare_checkpoints(plan.step_folder(STEP), plan.bridge_folder).model_dump()
    rows = found["deltas"] if "deltas" in found else found["stages"][0]["deltas"]
    assert ("tier3", "gold_nats") not in pairs(rows)
    assert ("tier3", "correct_probability") in pairs(rows)
    assert "gold nats of quiz, exam is on one side only" in json.dumps(found)


def main(folder: Path) -> None:
    sections = ("slices", "tasks", "probes", "generation_tasks")
    plans = write_pages(folder, steps=(10, 20, STEP), tiers=sections)
    tier_files(plans["second"])
    tables(plans["second"])
    drawn(plans)
    compared(plans)
    absent(plans["second"])
    exported(plans, folder / "shared")


if __name__ == "__main__":
    assert not str(evaluation.__file__).startswith(str(Path(__file__).parents[2])), "not the copy"
    main(Path(sys.argv[1]))
