"""Which models can be spread over how many GPUs, said before one is asked for."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.agreement import check_divisible
from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import ConfigError
from tests.checkpoints.nanotron import llama, make_checkpoint, moe, qwen2

HEADS = {"num_attention_heads": 8, "num_key_value_heads": 4}
FITTING = [(llama(**HEADS), 4), (qwen2(**HEADS), 2), (qwen2(**HEADS, moe_config=moe()), 4)]
REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("key-value heads", llama(**{**HEADS, "num_key_value_heads": 2}), 4, "2 key-value heads.* 1 or 2$"),
    ("three", llama(**HEADS), 3, r"8 heads, 4 key-value heads.* set it to 1 or 2 or 4$"),
    ("inner units", llama(**HEADS, intermediate_size=26), 4, "26 inner units .* 1 or 2$"),
    (
        "experts",
        qwen2(**HEADS, moe_config=moe(moe_intermediate_size=9)),
        4,
        "9 inner units of an expert .* to 1$",
    ),
    ("more than heads", llama(**HEADS), 16, "1 or 2 or 4$"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "ranks"), FITTING)
def test_models_that_can_be(config: dict[str, Any], ranks: int, tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", config)
    check_divisible(open_checkpoint(tmp_path / "7"), ranks)


@pytest.mark.parametrize(
    ("config", "ranks", "expected"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_models_that_cannot(
    config: dict[str, Any], ranks: int, expected: str, tmp_path: Path
) -> None:
    make_checkpoint(tmp_path / "7", config)
    with pytest.raises(ConfigError, match=f"gpus_per_checkpoint: {ranks}, .*{expected}"):
        check_divisible(open_checkpoint(tmp_path / "7"), ranks)
