"""What forbids that two results are compared, and what is only noted."""

from pathlib import Path
from typing import Any

import pytest

from tests.bridge.folders import make_plans, read, write_stage_of

FEW = {"items": 12, "blocks": 9, "prompts": 8}
FILES = ("tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json")


def compared(root: Path, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
    """The deltas' file of a step and a bridge with these keys in their headers."""
    plan = make_plans(root, steps=(10,))["second"]
    write_stage_of(plan, {10: {"seed": 1, **FEW, **ours}}, **FEW, **theirs)
    return read(plan.step_folder(10) / "bridge_deltas.json")


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
    content = compared(tmp_path, ours, theirs)
    tiers = ("tier2", "tier3") if note and "rows" in note else ("tier2", "tier3", "tier4")
    expected = [f"{tier}: {note}" for tier in tiers if note]
    assert content["notes"] == expected
    assert (content["checkpoint"]["gpu"], content["bridge"]["gpu"]) == (
        ours.get("gpu"),
        theirs.get("gpu"),
    )
