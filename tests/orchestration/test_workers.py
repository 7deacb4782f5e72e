"""How a job deals out GPUs."""

from types import SimpleNamespace
from typing import Any

import pytest

from evaluation.orchestration.workers import gpus_to_use


def plan(device: str = "auto") -> Any:
    return SimpleNamespace(config=SimpleNamespace(scoring=SimpleNamespace(device=device)))


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0,1,2,3", ["0", "1", "2", "3"]),
        ("1,GPU-a,1", ["1", "GPU-a"]),
        (" 0 , 1 ,-1,2", ["0", "1"]),
        ("", [None]),
        ("-1", [None]),
        ("NoDevFiles", [None]),
    ],
)
def test_gpus_are_dealt_out(
    visible: str, expected: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus_to_use(plan()) == expected
    assert gpus_to_use(plan("cpu")) == [None]
