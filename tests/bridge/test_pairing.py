"""What forbids that two results are compared, and what is only noted."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.results.stage_files import Recommendation
from tests.bridge.folders import make_plans, read, write_side, write_stage_of

FEW = {"items": 12, "blocks": 9, "prompts": 8}
FILES = ("tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json")


def compared(root: Path, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
    """The deltas' file of a step and a bridge with these keys in their headers."""
    plan = make_plans(root, steps=(10,))["second"]
    write_stage_of(plan, {10: {"seed": 1, **FEW, **ours}}, **FEW, **theirs)
    return plan, read(plan.step_folder(10) / "bridge_deltas.json")


GPUS = ({"gpu": "H100"}, {"gpu": "A100"})
NARROW = {"dtype": "bfloat16"}
SINGLE = "; in bfloat16 that moves single items (docs/gpu.md)"
OTHER_GPU = "scored on the GPU H100, the bridge on A100"
OTHER_ROWS = "scored in rows of 16,384 tokens, the bridge in rows of 4,096 and 8,192"
SIDES: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
    ({"device": "cuda"}, {"device": "cpu"}, "scored on the device cuda, the bridge on cpu"),
    (*GPUS, OTHER_GPU),
    ({**GPUS[0], **NARROW}, {**GPUS[1], **NARROW}, f"{OTHER_GPU}{SINGLE}"),
    ({}, {"dtype": "float32", "device": "cpu", "gpu": "A100"}, None),
    (
        {"row_tokens": [16384], **NARROW},
        {"row_tokens": [4096, 8192], **NARROW},
        f"{OTHER_ROWS}{SINGLE}",
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "note"), SIDES)
def test_another_device_or_row_budget_is_noted(
    tmp_path: Path, ours: dict[str, Any], theirs: dict[str, Any], note: str | None
) -> None:
    """What an older file does not tell is not compared; answers are written without rows."""
    plan, content = compared(tmp_path, ours, theirs)
    tiers = ("tier2", "tier3") if note and "rows" in note else ("tier2", "tier3", "tier4")
    expected = [f"{tier}: {note}" for tier in tiers if note]
    assert content["notes"] == expected
    stage = Recommendation.read(plan.results / "recommendation.json")
    assert list(stage.notes) == [f"{line} (all steps)" for line in expected]


def test_steps_that_differ_from_the_bridge_are_named(tmp_path: Path) -> None:
    plan, content = compared(tmp_path, *GPUS)
    assert (content["checkpoint"]["gpu"], content["bridge"]["gpu"]) == ("H100", "A100")
    for step, gpu in ((20, "A100"), (30, "H100")):
        write_side(plan.step_folder(step), plan, step=step, seed=step, **FEW, gpu=gpu)
        write_deltas(plan, step)
    for steps, of in (((10, 20, 30), "steps 10, 30"), ((10, 20), "step 10")):
        write_stage(plan, steps)
        stage = Recommendation.read(plan.results / "recommendation.json")
        assert stage.notes[0] == f"tier2: {OTHER_GPU} ({of})"
