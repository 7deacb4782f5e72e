"""Metrics next to accuracy, and tasks that rank nothing: decided on bits per byte, in no mean."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.reporting.tables.side_by_side import side_by_side
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import GOLD, SUITE, make_plans, read, write_stage_of

SMALL = 0.05
"""A skill that few questions show and every log-probability does."""

BITS, ACC, GREEDY = "delta_gold_bits_per_byte", "delta_acc", "delta_greedy"
RANKED: dict[str, Any] = SUITE["tasks"]
MIXED = {
    "quiz": RANKED["quiz"],
    "sums": {**GOLD, "group": "math"},
    "code": {**GOLD, "group": "math"},
}


def improve(**keys: Any) -> dict[str, Any]:
    return {"tier": "tier3", "want": "improve", "margin": 0.0, **keys}


def compared(
    root: Path, tasks: dict[str, Any], *objectives: dict[str, Any], **ours: Any
) -> tuple[StagePlan, dict[str, Any], dict[tuple[str, str], Any]]:
    """The plan, the second step's deltas, and their rows."""
    suite, steps = {"tasks": tasks}, (10, 20)
    plan = make_plans(root, suite=suite, objective=list(objectives), steps=steps)["second"]
    write_stage_of(plan, dict.fromkeys(steps, ours))
    content = read(plan.step_folder(20) / "bridge_deltas.json")
    return plan, content, {(row["item"], row["metric"]): row for row in content["deltas"]}


def test_an_objective_may_name_a_secondary_metric(tmp_path: Path) -> None:
    bits = improve(metric="gold_bits_per_byte")
    keep = improve(want="keep", margin=0.001, metric="correct_probability")
    _, content, _ = compared(tmp_path / "better", RANKED, bits, skill=SMALL)
    assert content["objectives"][0]["verdict"] == "met"
    _, content, _ = compared(tmp_path / "worse", RANKED, keep, skill=-1.0)
    (objective,) = content["objectives"]
    assert (objective["verdict"], objective["regressions"]) == ("not met", ["quiz", "exam"])


def test_each_headline_has_a_mean_of_its_own(tmp_path: Path) -> None:
    objectives = improve(metric="acc"), improve(group="math"), improve(metric="greedy")
    plan, content, rows = compared(tmp_path, MIXED, *objectives, skill=0.3)
    primary = {key for key, row in rows.items() if row["primary"]}
    assert primary == {("quiz", ACC), ("sums", BITS), ("code", BITS)}
    assert all(rows[key]["flag"] == "better" and rows[key]["p_holm"] < 0.05 for key in primary)
    assert rows["overall", ACC]["value"] == rows["quiz", ACC]["value"]
    for metric, names in ((BITS, ("quiz", "sums", "code")), (GREEDY, ("sums", "code"))):
        mean = np.mean([rows[name, metric]["delta"] for name in names])
        assert rows["overall", metric]["delta"] == pytest.approx(mean)
        assert rows["overall", metric]["flag"] is None  # next to accuracy, or to bits per byte
    decided = [(one["metric"], one["items"], one["verdict"]) for one in content["objectives"]]
    math = ["sums", "code"]
    assert decided == [(ACC, ["quiz"], "met"), (BITS, math, "met"), (GREEDY, math, "met")]
    assert plan.stage.objective[1].metric == "gold_bits_per_byte"
    bits = "gold_bits_per_byte"
    table, _ = side_by_side({"20": plan.step_folder(20)})
    shown = [(row["item"], row["metric"]) for row in table]
    assert shown == [("overall", "acc"), ("quiz", "acc"), ("sums", bits), ("code", bits)]
