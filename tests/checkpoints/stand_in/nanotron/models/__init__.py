"""build_model, and what models are here: the tests' own forward pass in float64, rounded."""

import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.checkpoints.nanotron import forward

ACT = os.environ["STAND_IN"]


def build_model(
    model_builder: Any,
    parallel_context: Any,
    dtype: torch.dtype,
    target_pp_ranks: Any = None,
    device: Any = None,
) -> Any:
    assert dtype == torch.bfloat16
    assert parallel_context.sizes == (1, 1, 1)
    return model_builder()


class Body:
    def __init__(self, config: Any) -> None:
        self.config = config
        self.tensors: dict[str, torch.Tensor] = {}

    def logits(self, ids: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        """(T, V) of a row; or whatever this stand-in is told to do in its place."""
        _misbehave()
        config = asdict(self.config)
        if ACT == "rope":
            config["rope_interleaved"] = not config["rope_interleaved"]
        mup = self.config._is_using_mup
        found = forward(self.tensors, config, ids, positions, mup=mup)
        if ACT == "other":
            found = found.flip(-1)
        if ACT == "nan":
            found[0, 0] = torch.nan
        return found.bfloat16()


def _misbehave() -> None:
    folder = Path(sys.argv[1])
    if ACT == "crash":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if ACT == "die":
        os._exit(9)
    if ACT == "hang":
        time.sleep(600)
    if ACT == "nothing":
        os._exit(0)
    if ACT == "rubbish":
        (folder / "logits.safetensors").write_bytes(b"rubbish" * 9)
        os._exit(0)
    if ACT == "other ids":
        path = folder / "ids.safetensors"
        from safetensors.torch import load_file, save_file

        save_file({"input_ids": load_file(path)["input_ids"] + 1}, folder / "logits.safetensors")
        os._exit(0)
    if ACT == "refuses without a word":
        (folder / "refused.json").write_text("{")
        os._exit(3)
    if ACT == "noisy":
        os.write(1, b"\xff\x00 { \n" * 100)


class ForTraining(nn.Module):
    def __init__(
        self, config: Any, parallel_context: Any, parallel_config: Any, random_states: Any = None
    ) -> None:
        super().__init__()
        assert (parallel_config.dp, parallel_config.pp, parallel_config.tp) == (1, 1, 1)
        self.place = nn.Parameter(torch.zeros(1))
        self.body = Body(config)


class LlamaForTraining(ForTraining):
    def model(self, input_ids: torch.Tensor, input_mask: torch.Tensor) -> torch.Tensor:
        """(T, B, V)"""
        assert input_mask.dtype == torch.bool
        assert input_mask.all()
        return torch.stack([self.body.logits(row) for row in input_ids], dim=1).float()


class Qwen2ForTraining(ForTraining):
    def model(self, input_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B * T, V)"""
        rows = zip(input_ids, position_ids, strict=True)
        return torch.cat([self.body.logits(row, places) for row, places in rows])
