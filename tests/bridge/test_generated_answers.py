"""Tier5 against the bridge: verifiers that failed, strata of prompts, and pass-rate changes."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from statsmodels.stats.multitest import multipletests

from evaluation.reporting.table import stage_rows
from evaluation.results.deltas_file import StepDeltas
from tests.bridge.folders import make_plans, write_stage_of
from tests.bridge.paired import paired_rate


def rates(folder: Path) -> dict[str, tuple[str, float]]:
    """Level and pass rate of each prompt by the primary verifier, from the table alone."""
    rows = pq.read_table(folder / "tier5_verified_units.parquet").to_pylist()
    return {
        row["unit"]: (json.loads(row["strata"])["level"], row["pass_rate"])
        for row in rows
        if row["pass_rate"] is not None
    }


def test_every_stratum_is_paired_by_its_own_prompts(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=("generation_tasks",), steps=(30,))["second"]
    write_stage_of(plan, {30: {"skill": 0.3, "seed": 3}})
    content = StepDeltas.read(plan.step_folder(30) / "bridge_deltas.json")
    ours, theirs = rates(plan.step_folder(30)), rates(plan.bridge_folder)
    rows = {row["metric"]: row for row in content.deltas if row["item"] == "sums"}
    (primary,) = (row for row in content.deltas if row["primary"])
    assert primary == rows["delta_pass_rate"]
    assert primary["p_holm"] == primary["p"]  # groups are a family
    assert primary["n"] == 46  # of 48, as each side could not judge one of its own
    assert rows["delta_truncated_rate"]["n"] == 48
    found = content.groups
    named = [(row["item"], row["by"], row["group"]) for row in found]
    assert named == [("sums", "level", "0"), ("sums", "level", "1")]
    for row in found:
        names = [n for n in ours if n in theirs and ours[n][0] == row["group"]]
        pairs = np.array([(ours[n][1], theirs[n][1]) for n in names])
        assert row["prompts"] == len(names) == 23
        assert row["value"] == pytest.approx(pairs[:, 0].mean())
        assert row["delta"] == pytest.approx((pairs[:, 0] - pairs[:, 1]).mean())
        known = paired_rate(*pairs.T)
        assert (row["p"], row["low"]) == (pytest.approx(known.p), pytest.approx(known.low))
    adjusted = multipletests([row["p"] for row in found], method="holm")[1]
    assert [row["p_holm"] for row in found] == pytest.approx(list(adjusted))
    assert [row["flag"] for row in found] == ["better" if p < 0.05 else "unclear" for p in adjusted]
    table, _ = stage_rows(plan, {}, [30], {30: content}, {})
    (row,) = (one for one in table if (one["item"], one["step"]) == ("sums (level 1)", 30))
    assert (row["delta"], row["n"]) == (found[1]["delta"], 23)
    assert (row["primary"], row["against"]) == (False, "second/100")


def test_equal_rates_and_lengths_of_two_checkpoints_are_no_certainty(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=("generation_tasks",), steps=(30,))["second"]
    write_stage_of(plan, {30: {"seed": 0}})  # the bridge's
    content = StepDeltas.read(plan.step_folder(30) / "bridge_deltas.json")
    (row,) = (row for row in content.deltas if row["primary"])
    assert (row["delta"], row["p"]) == (0, 1)
    assert row["low"] < 0 < row["high"]
