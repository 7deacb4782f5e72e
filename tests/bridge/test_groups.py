"""Where verified answers gained and lost: by fixed groups, and prompt by prompt."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side

AIMS = [{"tier": "tier5", "want": "improve", "margin": 0.0}]


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    plan = make_plans(tmp_path, tiers=("generation_tasks",), objective=AIMS)["second"]
    write_side(plan.bridge_folder, plan, step=100, seed=0)
    plan.checkpoint(10).mkdir(parents=True)
    write_side(plan.step_folder(10), plan, step=10, skill=0.3, seed=1)
    write_deltas(plan, 10)
    write_stage(plan, [10])
    return plan


def content(plan: StagePlan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((plan.step_folder(10) / "bridge_deltas.json").read_text())
    return found


def rates(folder: Path) -> dict[str, tuple[str, float]]:
    """Level and pass rate of each prompt by the primary verifier, from the table alone."""
    rows = pq.read_table(folder / "tier5_verified_prompts.parquet").to_pylist()
    return {
        row["id"]: (json.loads(row["strata"])["level"], row["pass_rate"])
        for row in rows
        if row["verifier"] == "lenient" and row["pass_rate"] is not None
    }


def plain_p(differences: np.ndarray[Any, Any]) -> float:
    """Of means over samples, by Student's t with no more freedom than those that differ have."""
    t = stats.ttest_1samp(differences, 0).statistic
    return float(2 * stats.t.sf(abs(t), np.count_nonzero(differences) - 1))


def test_every_group_is_paired_by_its_own_prompts(plan: StagePlan) -> None:
    ours, theirs = rates(plan.step_folder(10)), rates(plan.bridge_folder)
    found = content(plan)["groups"]
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


def test_groups_change_no_other_delta(plan: StagePlan) -> None:
    """They are a family of their own."""
    found = content(plan)
    primary = [row for row in found["deltas"] if row["primary"]]
    assert [row["item"] for row in primary] == ["sums"]
    assert primary[0]["p_holm"] == primary[0]["p"]


def test_prompts_are_counted_by_their_rates(plan: StagePlan) -> None:
    ours, theirs = rates(plan.step_folder(10)), rates(plan.bridge_folder)
    (moves,) = content(plan)["moves"]
    counts = np.array(moves["counts"])
    assert counts.sum() == len(ours.keys() & theirs.keys())
    band = {0.0: "never", 0.5: "up to 2/3", 1.0: "always"}  # of two samples
    for before, row in zip(moves["bands"], counts, strict=True):
        for after, count in zip(moves["bands"], row, strict=True):
            pairs = [
                name
                for name in ours.keys() & theirs.keys()
                if (band[theirs[name][1]], band[ours[name][1]]) == (before, after)
            ]
            assert count == len(pairs)
    assert np.triu(counts, 1).sum() > np.tril(counts, -1).sum()  # it gained
