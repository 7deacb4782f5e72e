"""Questions that two tasks share, from the files of two checkpoints to the verdicts of a stage."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.paired_binary import credit_difference
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.files import write_parquet
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import SUITE, make_plans, read, write_deltas, write_side, write_stage
from tests.bridge.units import write_all_units

STEPS = (10, 20, 30)


def twins(root: Path) -> StagePlan:
    """Two tasks that are one by another name, on all sides."""
    suite = {"tasks": dict.fromkeys(("quiz", "quiz_again"), SUITE["tasks"]["quiz"])}
    plan = make_plans(root, suite=suite, steps=STEPS)["second"]
    sides = {plan.bridge_folder: (100, 0.0)}
    sides |= {plan.step_folder(step): (step, step / 300) for step in STEPS}
    for folder, (step, skill) in sides.items():
        write_side(folder, plan, step=step, skill=skill, seed=step, items=200)
        _repeat(folder)
    return plan


def _repeat(folder: Path) -> None:
    path, summary = folder / "tier3_cf_candidates.parquet", folder / "tier3_cf.json"
    table = pq.read_table(path)
    first = table.filter(pc.equal(table["task"], "quiz"))
    first = first.append_column("question", first["item"])
    names = pa.array(["quiz_again"] * first.num_rows)
    write_parquet(path, pa.concat_tables([first, first.set_column(0, "task", names)]))
    content = json.loads(summary.read_text())
    content["tasks"]["quiz_again"] = content["tasks"]["quiz"]
    summary.write_text(json.dumps(content))
    write_all_units(folder)


def deltas_of(plan: StagePlan, step: int) -> dict[str, Delta]:
    sides = (read_results(one, ["tier3"]) for one in (plan.step_folder(step), plan.bridge_folder))
    return {one.item: one for one in compare(*sides) if one.metric == "delta_acc"}


def test_a_task_under_two_names_is_one(tmp_path: Path) -> None:
    plan = twins(tmp_path)
    found = deltas_of(plan, 30)
    alone, both = found["quiz"].estimate, found[OVERALL].estimate
    assert both.value == pytest.approx(alone.value)
    assert both.se == pytest.approx(alone.se)
    assert (both.low, both.high) == pytest.approx((alone.low, alone.high), rel=0.05)


def test_places_that_show_a_verdict_agree(tmp_path: Path) -> None:
    """Step, stage, summary and recommendation: the corrected verdict, and each with its recipe."""
    plan = twins(tmp_path)
    for step in STEPS:
        write_deltas(plan, step)
    write_stage(plan, STEPS)
    stage, advice = (read(plan.results / f) for f in ("bridge_deltas.json", "recommendation.json"))
    for entry in stage["verdicts"]:
        own = read(plan.step_folder(entry["step"]) / "bridge_deltas.json")
        assert entry["own_verdict"] == own["verdict"]
        assert entry["verdict"] != "met" or own["verdict"] == "met"
        (objective,) = entry["objectives"]
        recipe = objective["recipe"]
        assert recipe["low"] <= objective["low"] + 0.02
        assert recipe["low"] < objective["delta"] < recipe["high"]
        assert objective["shares"] == pytest.approx({"quiz": 0.5, "quiz_again": 0.5})
        if entry["step"] == advice["step"]:
            assert entry["verdict"] == advice["verdict"]
    assert advice["recipe"][0].startswith("Ranked choices (tier3), accuracy: ")
    assert {row["item"] for row in advice["noise"]} == {"quiz", "quiz_again"}
    assert all(np.isfinite(row["level"]) for row in advice["noise"])


def test_a_mean_of_exact_tests_on_the_same_questions_reaches_no_further_than_its_widest() -> None:
    """Three of 60 questions changed, one of them also in a task of the first 20."""
    differences, ids = np.zeros(60), [str(i) for i in range(60)]
    differences[[3, 30, 50]] = -1.0, 1.0, 1.0
    passages = [str(i // 4) for i in range(60)]
    parts = {
        name: credit_difference(
            Differences(
                kind="credit",
                amounts=differences[:n],
                layout=Layout(n, own and own[:n], None, [ids[:n]]),
                passes=True,
            )
        )
        for name, n, own in (("all", 60, passages), ("small", 20, passages), ("alone", 60, None))
    }
    mean = macro_mean(parts)
    assert all(part.counts is not None for part in parts.values())
    assert parts["small"].low <= mean.low < mean.high <= parts["small"].high
