"""Checks against answers that were written to talk them round, and against right but odd ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from evaluation.grading.checks.registry import passes
from evaluation.settings.checks import Check

CHECK: TypeAdapter[Check] = TypeAdapter(Check)
TABLE: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "adversarial.yaml").read_text(encoding="utf-8")
)
CASES = [
    pytest.param(entry["check"], answer, verdict == "passes", id=f"{number}-{verdict}-{index}")
    for number, entry in enumerate(TABLE)
    for verdict in ("passes", "fails")
    for index, answer in enumerate(entry[verdict])
]


@pytest.mark.parametrize(("check", "answer", "right"), CASES)
def test_a_check_is_not_talked_round(check: dict[str, Any], answer: str, right: bool) -> None:
    assert passes(CHECK.validate_python(check), answer) == right
