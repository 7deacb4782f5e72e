"""The demo's results must agree with the known order of its checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo.order import disagreements
from evaluation.protocol import BRIDGE
from evaluation.results.deltas_file import DeltaRow, StageDeltas
from evaluation.results.files import write_model
from evaluation.results.stage_files import Recommendation
from evaluation.settings.config import Config, Stage
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans


def delta(step: int, item: str, flag: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(DeltaRow.model_fields)
    row |= dict.fromkeys(("value", "bridge_value", "delta"), 0.0)
    row |= {"stage": "stage4", "bridge": "stage3/1000", "step": step, "tier": "tier2", "item": item}
    row |= {"metric": "delta_nats_per_token", "flag": flag, "primary": item != "overall"}
    return {**row, "n": 1, "clusters": 1, "want": "<= 0", "method": "given"}


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """Stage 4: step 100 is noisier than its bridge, step 200 less."""
    made = make_plans(tmp_path)["second"]
    content = made.stage.model_dump() | {"bridge": {"stage": "stage3", "step": 1000}}
    config = Config.model_construct(results=str(tmp_path))
    return replace(made, name="stage4", stage=Stage(**content), config=config)


def write(
    plan: StagePlan, flags: dict[int, tuple[str, str]], verdict: str, advised: int, **more: Any
) -> None:
    deltas = [
        delta(step, item, flag)
        for step, pair in flags.items()
        for item, flag in zip(("overall", "web"), pair, strict=True)
    ]
    for name in plan.stage.merges:
        deltas.append({**delta(0, "overall", "worse"), "step": None, "merge": name})
    verdicts = [
        {"step": step, "verdict": answer, "aims": []}
        for step, answer in ((100, verdict), (200, "undecided"))
    ]
    verdicts += [
        {"merge": name, "step": None, "verdict": "met", "aims": []} for name in plan.stage.merges
    ]
    stage = {"stage": "stage4", "protocol": BRIDGE, "verdicts": verdicts, "deltas": deltas}
    write_model(plan.results / "bridge_deltas.json", StageDeltas, stage)
    advice = {"stage": "stage4", "step": advised, "meets": True, "why": "given"}
    advice |= {"beside": [], "others": [], **more}
    write_model(plan.results / "recommendation.json", Recommendation, advice)


def test_what_agrees(plan: StagePlan) -> None:
    write(plan, {100: ("worse", "unclear"), 200: ("better", "better")}, "not met", 200)
    assert disagreements(plan) == []


def test_what_does_not_is_named(plan: StagePlan) -> None:
    write(plan, {100: ("unclear", "worse"), 200: ("better", "worse")}, "met", 100)
    assert disagreements(plan) == [
        "stage4 step 100: Tier2's mean is unclear, not worse",
        "stage4 step 100: a planted regression is met",
        "stage4 step 200: tier2 web delta_nats_per_token is worse",
        "stage4: step 100 is named, not step 200, which has the least noise",
    ]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"100": 0.5, "200": 0.5}, "Tier2's mean is worse, not better"),  # 0.045 beside 0.05
        ({"100": 0.7, "200": 0.3}, "a planted regression is met"),  # 0.063
    ],
)
def test_a_merge_has_the_mean_of_its_members_noise(
    plan: StagePlan, weights: dict[str, float], said: str
) -> None:
    stage = Stage(**(plan.stage.model_dump() | {"merges": {"both": {"weights": weights}}}))
    plan = replace(plan, stage=stage)
    write(plan, {100: ("worse", "unclear"), 200: ("better", "better")}, "not met", 200)
    assert disagreements(plan) == [f"stage4 merge both: {said}"]


def test_a_merge_is_named_only_where_the_best_step_is_not_different(plan: StagePlan) -> None:
    stage = Stage(**(plan.stage.model_dump() | {"merges": {"both": {"mean": ["100", "200"]}}}))
    plan = replace(plan, stage=stage)
    close = {"step": 200, "delta": 0.0, "low": None, "high": None, "p": None}
    flags = {100: ("worse", "unclear"), 200: ("better", "better")}
    wrong = "stage4 merge both: Tier2's mean is worse, not better"
    write(plan, flags, "not met", 0, step=None, merge="both", beside=[close])
    assert disagreements(plan) == [wrong]
    write(plan, flags, "not met", 0, step=None, merge="both")
    named = "stage4: merge both is named, not step 200, which has the least noise"
    assert disagreements(plan) == [wrong, named]
