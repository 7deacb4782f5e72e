"""Two stages with results, few items each."""

from pathlib import Path

import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import make_plans, write_side
from tests.reporting.pages import STEPS


@pytest.fixture
def plans(tmp_path: Path) -> dict[str, StagePlan]:
    """Both stages scored, the second one compared with its bridge."""
    plans = make_plans(tmp_path, tiers=tuple(tier.section for tier in TIERS.values()))
    first, second = plans["first"], plans["second"]
    few = {"items": 12, "blocks": 9, "prompts": 8}
    write_side(first.step_folder(100), first, step=100, **few)
    write_side(second.bridge_folder, second, step=100, **few)
    for plan, steps in ((first, (100,)), (second, STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
    for step in STEPS:
        write_side(second.step_folder(step), second, step=step, skill=step / 20, seed=step, **few)
        write_deltas(second, step)
    write_stage(second, STEPS)
    write_quality(read_stage(second, STEPS))
    return plans
