"""The bridge's noise, read from the last checkpoints of its own stage, or assumed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.checkpoints.subjects import previous_folders
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, read, write_side

OBJECTIVE = [
    {"tier": "tier3", "want": "improve", "margin": 0.0, "average": 3},
    {"tier": "tier2", "want": "keep", "margin": 0.02},
]
BEFORE = (70, 80, 90, 100)


def stages(root: Path) -> tuple[StagePlan, StagePlan]:
    """A stage of three steps, and the one before it, whose last step is the bridge."""
    plans = make_plans(root, tiers=("slices", "tasks"), objective=OBJECTIVE)
    stages = dict(plans["second"].config.stages)
    stages["first"] = stages["first"].model_copy(update={"steps": (*BEFORE, 110)})
    config = plans["second"].config.model_copy(update={"stages": stages})
    first, second = (
        replace(plan, config=config, stage=stages[name]) for name, plan in plans.items()
    )
    write_side(second.bridge_folder, second, step=100, seed=100)
    for step in (10, 20, 30):
        write_side(second.step_folder(step), second, step=step, skill=0.3, seed=step)
    return first, second


def before(first: StagePlan, noise: float, **others: Any) -> None:
    """The earlier stage's checkpoints, whose skill goes up and down."""
    for number, step in enumerate(BEFORE):
        skill = noise * (-1) ** number if step != 100 else 0.0
        write_side(first.step_folder(step), first, step=step, skill=skill, seed=step, **others)


def advice(plan: StagePlan) -> Any:
    for step in (10, 20, 30):
        write_deltas(plan, step)
    write_stage(plan, (10, 20, 30))
    return read(plan.results / "recommendation.json")


def recipe(plan: StagePlan, objective: int = 0) -> Any:
    stage = read(plan.results / "bridge_deltas.json")
    return stage["verdicts"][-1]["objectives"][objective]["recipe"]


def test_it_is_read_where_the_stage_before_has_the_items(tmp_path: Path) -> None:
    first, second = stages(tmp_path)
    assert previous_folders(second) == [first.step_folder(step) for step in (80, 90, 100)]
    said = advice(second)["recipe"]
    assumed, tier2 = recipe(second), recipe(second, 1)
    assert assumed["bridge_checkpoints"] is None
    assert all(text.endswith("the bridge's assumed equal") for text in said)
    before(first, noise=1.0)
    said = advice(second)
    noisy = recipe(second)
    assert noisy["bridge_checkpoints"] == 3
    assert noisy["se_checkpoints"] > assumed["se_checkpoints"]
    assert noisy["high"] - noisy["low"] > assumed["high"] - assumed["low"]
    assert all("the bridge's read from the last 3 of its own stage" in t for t in said["recipe"])
    assert said["averages"][0]["bridge_checkpoints"] == 3
    assert recipe(second, 1) != tier2
    before(first, noise=0.0)
    advice(second)
    assert recipe(second)["se_checkpoints"] < noisy["se_checkpoints"]


def test_it_is_assumed_where_items_differ(tmp_path: Path) -> None:
    """One task was measured otherwise, so the mean over all is not known; slices are."""
    first, second = stages(tmp_path)
    before(first, noise=1.0)
    path = first.step_folder(90) / "tier3_cf.json"
    content = json.loads(path.read_text())
    content["tasks"]["quiz"]["data_checksum"] = "other"
    path.write_text(json.dumps(content))
    advice(second)
    assert recipe(second)["bridge_checkpoints"] is None
    assert recipe(second, 1)["bridge_checkpoints"] == 3


def test_what_cannot_be_read_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = stages(tmp_path)
    before(first, noise=1.0)
    (first.step_folder(80) / "tier3_cf.json").write_text("{")
    assert advice(second)["verdict"] is not None
    assert recipe(second)["bridge_checkpoints"] is None
    assert f"the bridge's noise is read without {first.step_folder(80)}" in caplog.text
