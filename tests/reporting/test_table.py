"""The axis of training tokens through stages that count on, and through those that begin anew."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.reporting.table import tokens_before
from evaluation.settings.stage import Bridge
from tests.bridge.folders import make_plans, write_side


@pytest.mark.parametrize(
    ("second", "third", "before"), [(130, 160, [0, 0, 0]), (30, 20, [0, 100, 130])]
)
def test_each_stage_begins_where_the_one_before_ends(
    tmp_path: Path, second: int, third: int, before: list[int]
) -> None:
    plans = make_plans(tmp_path, tiers=("slices",), objective=[], steps=(second,))
    bridge = {"bridge": Bridge(stage="second"), "steps": (third,)}
    later = plans["second"].stage.model_copy(update=bridge)
    plans["third"] = replace(plans["second"], name="third", stage=later)
    assert tokens_before(plans["third"], plans) is None
    steps = dict(zip(plans, (100, second, third), strict=True))
    trained = [(plan.step_folder(steps[name]), steps[name]) for name, plan in plans.items()]
    trained += [(plans["second"].bridge_folder, 100), (plans["third"].bridge_folder, second)]
    for folder, step in trained:
        write_side(folder, plans["first"], step=step, blocks=2, consumed_tokens=step)
    assert [tokens_before(plan, plans) for plan in plans.values()] == before
