"""What forbids that two results are compared, and what is only noted."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.bridge.comparable import check_comparable
from evaluation.errors import BridgeError
from evaluation.results.read import Results, read_results
from tests.bridge.folders import make_plans, write_side

HEADER = {"items": 12, "blocks": 9, "prompts": 8, "dtype": "bfloat16"}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Results, Results]:
    plan = make_plans(tmp_path, steps=(10,))["second"]
    ours, theirs = plan.step_folder(10), plan.bridge_folder
    write_side(ours, plan, step=10, gpu="H100", row_tokens=[16384], device="cuda", **HEADER)
    write_side(theirs, plan, step=100, gpu="A100", row_tokens=[4096, 8192], **HEADER)
    return read_results(ours, plan.tiers), read_results(theirs, plan.tiers)


def test_what_moves_single_items_is_noted(sides: tuple[Results, Results]) -> None:
    """What one side does not tell is not compared; answers are written without rows."""
    single = "; in bfloat16 that moves single items (docs/gpu.md)"
    gpu = f"scored on the GPU H100, the bridge on A100{single}"
    rows = f"scored in rows of 16,384 tokens, the bridge in rows of 4,096 and 8,192{single}"
    expected = [f"{tier}: {note}" for tier in ("tier2", "tier3") for note in (gpu, rows)]
    assert check_comparable(*sides) == [*expected, f"tier4: {gpu}"]


def test_other_suites_are_refused(sides: tuple[Results, Results]) -> None:
    ours, theirs = sides
    tier = theirs.tiers["tier3"]
    fewer = replace(tier, items={"quiz": tier.items["quiz"]})
    with pytest.raises(BridgeError, match=r"step_10 has exam alone; score the same suites"):
        check_comparable(ours, replace(theirs, tiers={**theirs.tiers, "tier3": fewer}))
