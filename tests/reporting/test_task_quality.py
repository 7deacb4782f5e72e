"""Files and page that say how much each slice and task can detect."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluation.reporting.table import stage_rows
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.results.stage_files import TaskQuality
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import edited, make_plans, write_side, write_stage_of
from tests.reporting.pages import STEPS, rows_of, write_report

UNDECIDED = [{"tier": "tier3", "want": "keep", "margin": 0.01}]


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """Steps that gain too little to be shown, of tasks whose split is used up or is not."""
    plan = make_plans(tmp_path, tiers=("slices", "tasks"), objective=UNDECIDED)["second"]
    gains = {step: {"skill": step / 1000, "nats": 3 - step / 1000} for step in STEPS}
    write_stage_of(plan, gains, seed=100)
    for folder in (plan.bridge_folder, *map(plan.step_folder, STEPS)):
        with edited(folder / "tier3_cf.json") as content:
            for task, asked in (("quiz", 12_000), ("exam", 400)):
                counts = {"asked": asked, "used": 400, "left_out": {"limit": asked - 400}}
                content["tasks"][task]["items"] = counts
    return plan


def rows_in(plan: StagePlan, *steps: int) -> list[SimpleNamespace]:
    table, _ = stage_rows(plan, {}, steps, {}, {})
    return [SimpleNamespace(**row) for row in write_quality(plan, table).rows]


def test_a_stage_with_a_bridge(plan: StagePlan) -> None:
    rows = {(row.item, row.metric): row for row in rows_in(plan, *STEPS)}
    assert set(rows) == {
        (item, metric)
        for tier, items in (("tier2", ("web", "code")), ("tier3", ("quiz", "exam")))
        for item in items
        for metric in TIERS[tier].metrics_by("ranked")
    }
    acc, bits = rows["quiz", "acc"], rows["quiz", "gold_bits_per_byte"]
    assert (acc.n, acc.compared_with, acc.checkpoints) == (400, "bridge", 3)
    assert (acc.difference, acc.too_small, acc.in_split) == (0.01, True, 12_000)
    assert rows["exam", "acc"].in_split == 400
    assert acc.needed > 2000
    assert bits.needed < acc.needed
    nats = rows["web", "nats_per_token"]
    assert nats.monotonicity == pytest.approx(1)  # less is better, so its sign is changed


def test_the_table_has_the_same_rows(plan: StagePlan) -> None:
    write_report(plan)
    quality = TaskQuality.read(plan.results / "task_quality.json")
    table = rows_of(plan.results / "task_quality.csv")
    assert list(table[0]) == [*quality.rows[0]]
    assert len(table) == len(quality.rows)


def test_a_stage_without_a_bridge_is_paired_with_the_step_before(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=("tasks",))["first"]
    write_side(plan.step_folder(100), plan, step=100)
    for only in rows_in(plan, 100):
        assert (only.needed, only.compared_with, only.monotonicity) == (None,) * 3
    write_side(plan.step_folder(200), plan, step=200, skill=0.5, seed=1)
    found = rows_in(plan, 100, 200)
    assert {row.compared_with for row in found} == {"step 100"}
    assert all(row.needed for row in found)


def test_an_external_program_without_items(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=("slices", "tasks"), command="launch")["second"]
    for folder, step in ((plan.bridge_folder, 100), (plan.step_folder(10), 10)):
        write_side(folder, plan, step=step, per_item=False, protocol="external: launch")
    rows = rows_in(plan, 10)
    assert {row.metric for row in rows} == {"nats_per_token", "acc"}
    assert all(row.needed is None and row.compared_with is None for row in rows)
