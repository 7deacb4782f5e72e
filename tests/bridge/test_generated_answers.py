"""Tier5 against the bridge: verifiers that failed, fixed groups of prompts, and pass-rate changes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluation.bridge.paired import estimate_of, paired_of
from evaluation.metrics.layout import Layout
from evaluation.metrics.ratios import Ratio
from evaluation.results.read import Item
from evaluation.results.tier_files import ItemEntry
from evaluation.results.units import Units
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import make_plans, read, write_stage_of

OBJECTIVES = [{"tier": "tier5", "want": "improve", "margin": 0.0}]


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """Verifiers failed on other prompts at every step."""
    plan = make_plans(tmp_path, tiers=("generation_tasks",), objective=OBJECTIVES)["second"]
    write_stage_of(plan, {10 * n: {"skill": 0.1 * n, "seed": n} for n in (1, 2, 3)})
    return plan


def deltas(plan: StagePlan) -> dict[str, Any]:
    found: dict[str, Any] = read(plan.step_folder(30) / "bridge_deltas.json")
    return found


def item_of(ids: str, rates: Sequence[float]) -> Item:
    """A task of independent prompts with these pass rates."""
    measured = {"pass_rate": Ratio(np.array(rates, np.float64))}
    units = Units(ids=[*ids], layout=Layout(len(ids)), measured=measured)
    return Item(group=None, values={}, same={}, entry=ItemEntry(), units=units)


def test_what_is_left_out_keeps_its_place() -> None:
    ours, theirs = (item_of("abc", rates) for rates in ([0.5, np.nan, 0], [0, 1, 0.5]))
    found = paired_of(ours, theirs, TIERS["tier5"].head, theirs.units.layout.groups)
    assert np.array_equal(found.amounts, [0.5, np.nan, -0.5], equal_nan=True)
    assert estimate_of(found).spread.labels.tolist() == [0, 2]
    short = item_of("ab", [0, 0])
    assert paired_of(ours, short, TIERS["tier5"].head, short.units.layout.groups) is None


def rates(folder: Path) -> dict[str, tuple[str, float]]:
    """Level and pass rate of each prompt by the primary verifier, from the table alone."""
    rows = pq.read_table(folder / "tier5_verified_units.parquet").to_pylist()
    return {
        row["unit"]: (json.loads(row["strata"])["level"], row["pass_rate"])
        for row in rows
        if row["pass_rate"] is not None
    }


def plain_p(differences: np.ndarray[Any, Any]) -> float:
    """Of means over samples, by Student's t with no more freedom than those that differ have."""
    t = stats.ttest_1samp(differences, 0).statistic
    return float(2 * stats.t.sf(abs(t), np.count_nonzero(differences) - 1))


def test_every_group_is_paired_by_its_own_prompts(plan: StagePlan) -> None:
    ours, theirs = rates(plan.step_folder(30)), rates(plan.bridge_folder)
    rows = {row["metric"]: row for row in deltas(plan)["deltas"] if row["item"] == "sums"}
    (primary,) = (row for row in deltas(plan)["deltas"] if row["primary"])
    assert primary == rows["delta_pass_rate"]
    assert primary["p_holm"] == primary["p"]  # groups are a family
    assert primary["n"] == 46  # of 48, as each side could not judge one of its own
    truncated = rows["delta_truncated_rate"]
    assert (truncated["n"], truncated["higher_is_better"]) == (48, False)
    found = deltas(plan)["groups"]
    assert [(row["item"], row["by"], row["group"]) for row in found] == [
        ("sums", "level", "0"),
        ("sums", "level", "1"),
    ]
    for row in found:
        names = [n for n in ours if n in theirs and ours[n][0] == row["group"]]
        pairs = np.array([(ours[n][1], theirs[n][1]) for n in names])
        assert row["prompts"] == len(names) == 23
        assert row["value"] == pytest.approx(pairs[:, 0].mean())
        assert row["delta"] == pytest.approx((pairs[:, 0] - pairs[:, 1]).mean())
        known = plain_p(pairs[:, 0] - pairs[:, 1])
        assert known * (1 - 1e-9) <= row["p"] < 1.5 * known  # by Hall where they are skewed
        assert row["low"] < row["delta"] < row["high"]
    adjusted = multipletests([row["p"] for row in found], method="holm")[1]
    assert [row["p_holm"] for row in found] == pytest.approx(list(adjusted))
    assert [row["flag"] for row in found] == ["better" if p < 0.05 else "unclear" for p in adjusted]
