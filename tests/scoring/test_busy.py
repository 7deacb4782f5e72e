"""The share of the time in which a GPU had work, as a tier file has it."""

from typing import Any

import pytest

from evaluation.grading.header import gpu_busy

SUMMARIES: list[tuple[str, list[dict[str, Any]], dict[str, float]]] = [
    ("a CPU", [{"seconds": 2.0}], {}),
    ("half", [{"seconds": 2.0, "busy_seconds": 1.0}], {"gpu_busy": 0.5}),
    ("some older", [{"seconds": 9.0}, {"seconds": 4.0, "busy_seconds": 3.0}], {"gpu_busy": 0.75}),
    ("no time", [{"seconds": 0.0, "busy_seconds": 0.0}], {}),
    ("another clock", [{"seconds": 1.0, "busy_seconds": 1.01}], {"gpu_busy": 1.0}),
]


@pytest.mark.parametrize(
    ("summaries", "expected"), [one[1:] for one in SUMMARIES], ids=[one[0] for one in SUMMARIES]
)
def test_share_in_a_tier_file(summaries: list[dict[str, Any]], expected: dict[str, float]) -> None:
    assert gpu_busy(summaries) == expected
