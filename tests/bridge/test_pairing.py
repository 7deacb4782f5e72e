"""What forbids that two results are compared, and what is only noted."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.errors import BridgeError
from evaluation.reporting.compare import compare_folders
from evaluation.reporting.pages.provenance import provenance_tables
from evaluation.reporting.tables.stage_results import read_stage
from tests.bridge.folders import edit_json, make_plans, write_side

FEW = {"items": 12, "blocks": 9, "prompts": 8}
FILES = ("tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json")


def compared(root: Path, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
    """The deltas' file of a step and a bridge with these keys in their headers."""
    plan = make_plans(root, steps=(10,))["second"]
    write_side(plan.bridge_folder, plan, step=100, **FEW, **theirs)
    write_side(plan.step_folder(10), plan, step=10, seed=1, **FEW, **ours)
    return plan, json.loads(write_deltas(plan, 10).read_text(encoding="utf-8"))


def test_another_dtype_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match=r"dtype: 'bfloat16' in .*, but 'float32' in") as caught:
        compared(tmp_path, {"dtype": "bfloat16"}, {"dtype": "float32"})
    assert str(tmp_path / "results/second/by_checkpoint/step_10/tier2_ppl.json") in str(
        caught.value
    )
    assert str(tmp_path / "results/second/bridge/tier2_ppl.json") in str(caught.value)


@pytest.mark.parametrize("file", FILES)
def test_another_dtype_of_any_tier_is_refused(tmp_path: Path, file: str) -> None:
    plan, _ = compared(tmp_path, {"dtype": "float32"}, {"dtype": "float32"})
    edit_json(plan.bridge_folder / file, dtype="float16")
    with pytest.raises(BridgeError, match=f"dtype: 'float32' in .*{file}.*'float16'"):
        write_deltas(plan, 10)


@pytest.mark.parametrize(
    ("ours", "theirs", "note"),
    [
        ({"device": "cuda"}, {"device": "cpu"}, "scored on the device cuda, the bridge on cpu"),
        ({"gpu": "H100"}, {"gpu": "A100"}, "scored on the GPU H100, the bridge on A100"),
        ({"device": "cuda"}, {"device": "cuda"}, None),
        ({"device": "cuda"}, {}, None),
        ({"dtype": "float32"}, {}, None),
        ({}, {"dtype": "float32", "device": "cpu", "gpu": "A100"}, None),
    ],
)
def test_another_device_is_noted(
    tmp_path: Path, ours: dict[str, Any], theirs: dict[str, Any], note: str | None
) -> None:
    """What an older file does not tell is not compared."""
    plan, content = compared(tmp_path, ours, theirs)
    expected = [f"{tier}: {note}" for tier in ("tier2", "tier3", "tier4") if note]
    assert content["notes"] == expected
    write_stage(plan, (10,))
    tables = {table.title: table for table in provenance_tables(read_stage(plan, (10,)))}
    assert ("Comparison" in tables) == bool(note)
    if note:
        assert tables["Comparison"].rows == [(line, "all") for line in expected]
    said = compare_folders(plan.step_folder(10), plan.bridge_folder)[0]
    assert all(line in said for line in expected)
