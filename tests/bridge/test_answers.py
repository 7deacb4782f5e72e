"""Tier5 against the bridge, where verifiers failed on other prompts at every step."""

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.errors import BridgeError
from evaluation.results.kinds import Credits
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import edit_json, make_plans, write_side

STEPS = (10, 20, 30)
AIMS = [{"tier": "tier5", "want": "improve", "margin": 0.0}]


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    plan = make_plans(tmp_path, tiers=("generation_tasks",), objective=AIMS)["second"]
    write_side(plan.bridge_folder, plan, step=100, seed=0)
    for number, step in enumerate(STEPS, 1):
        plan.checkpoint(step).mkdir(parents=True)
        write_side(plan.step_folder(step), plan, step=step, skill=0.1 * number, seed=number)
    return plan


def test_prompts_that_one_side_could_not_judge_are_left_out_of_both(plan: StagePlan) -> None:
    for step in STEPS:
        write_deltas(plan, step)
    write_stage(plan, STEPS)
    found = json.loads((plan.step_folder(10) / "bridge_deltas.json").read_text())
    rows = {one["metric"]: one for one in found["deltas"] if one["item"] == "sums"}
    assert rows["delta_pass_rate"]["n"] == 46  # of 48, as each side lacks one of its own
    assert rows["delta_truncated_rate"]["n"] == 48
    assert rows["delta_truncated_rate"]["want"] == "<= 0"
    chosen = json.loads((plan.results / "recommendation.json").read_text())
    assert chosen["step"] == 30


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("decoding", {"sampling": {"n": 9}}, "decoding of task 'sums'"),
        ("views", {}, "verifiers of task 'sums'"),
        ("data_checksum", {"prompts": "2"}, "data of task 'sums'"),
    ],
)
def test_other_prompts_sampling_or_verifiers_are_not_compared(
    plan: StagePlan, key: str, value: object, said: str
) -> None:
    path = plan.step_folder(10) / "tier5_verified.json"
    content = json.loads(path.read_text())
    content["generation_tasks"]["sums"][key] = value
    edit_json(path, generation_tasks=content["generation_tasks"])
    with pytest.raises(BridgeError, match=said):
        write_deltas(plan, 10)


def test_what_is_left_out_keeps_its_place() -> None:
    credits = Credits(ids=("a", "c"), credit=np.ones(2), excluded={"b": 1})
    assert credits.over_all(np.asarray([0.5, -0.5])).tolist() == [0.5, 0.0, -0.5]
    other = Credits(ids=("b", "c"), credit=np.zeros(2), excluded={"a": 0})
    assert credits.without(other).ids == other.without(credits).ids == ("c",)
    assert credits.without(other).asked == 3
