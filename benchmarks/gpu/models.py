"""Write Llamas of random weights as Nanotron checkpoints.

Weights are drawn on the device: matrices with a standard deviation of 1/√(inputs), so that activations
stay near 1 in every layer and log-probabilities depend on the input.
"""

import json
import math
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from demo.nanotron_writer import write_parameters
from evaluation.checkpoints.architecture import parse_architecture
from evaluation.errors import OutputError

WINDOW = 2048


@dataclass(frozen=True, kw_only=True)
class Size:
    """The shape of a Llama."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int = 49152
    tied: bool = True

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    @property
    def layer_shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of a layer's matrices in transformers."""
        kv = self.kv_heads * self.head_dim
        return [
            *[(self.hidden, self.hidden), (self.hidden, kv), (self.hidden, kv)],
            *[(self.hidden, self.hidden), (self.hidden, self.intermediate)],
            *[(self.hidden, self.intermediate), (self.intermediate, self.hidden)],
        ]

    @property
    def body(self) -> int:
        """Number of weights in all layers' matrices."""
        return self.layers * sum(a * b for a, b in self.layer_shapes)

    @property
    def parameters(self) -> int:
        """Number of all weights, except norms."""
        return self.body + self.hidden * self.vocabulary * (1 if self.tied else 2)

    def model_config(self) -> dict[str, Any]:
        """Return the configuration in Nanotron's format."""
        return {
            "is_llama_config": True,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "vocab_size": self.vocabulary,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "rope_theta": 10_000.0,
            "rope_interleaved": False,
            "rope_scaling": None,
            "tie_word_embeddings": self.tied,
            "max_position_embeddings": WINDOW,
            "bos_token_id": 1,
            "eos_token_id": 2,
        }


SIZES = {
    "tiny": Size(hidden=64, intermediate=128, layers=2, heads=4, kv_heads=2),
    "135m": Size(hidden=576, intermediate=1536, layers=30, heads=9, kv_heads=3),
    "1.7b": Size(hidden=2048, intermediate=8192, layers=24, heads=32, kv_heads=32),
    "8b": Size(
        hidden=4096,
        intermediate=14336,
        layers=32,
        heads=32,
        kv_heads=8,
        vocabulary=128256,
        tied=False,
    ),
}
"""Shapes of SmolLM2's two sizes and of Llama 3.1; `tiny` is for trying the program."""


def write_checkpoint(
    folder: Path,
    size: Size,
    dtype: torch.dtype,
    device: torch.device,
    *,
    seed: int,
    tp: int = 1,
) -> float:
    """Write the checkpoint to a new folder; return the seconds.

    Raises OutputError if there is not enough disk space.
    """
    needed = size.parameters * dtype.itemsize
    folder.mkdir(parents=True)
    free = shutil.disk_usage(folder).free
    if free < 1.05 * needed:
        raise OutputError(
            f"{folder}: {needed / 1e9:.0f} GB are needed and {free / 1e9:.0f} GB are free; give "
            "--scratch a folder on a larger disk"
        )
    config = size.model_config()
    expected = parse_architecture(config, False, WINDOW, "benchmark").parameters()
    random = torch.Generator(device).manual_seed(seed)

    def draw(name: str) -> torch.Tensor:
        shape = expected[name].shape
        if len(shape) == 1:
            return torch.ones(shape, dtype=dtype)
        # Twice the standard deviation for embedding and head, so that logits differ by a few nats.
        deviation = (2 if "embedding" in name or "lm_head" in name else 1) / math.sqrt(shape[1])
        weight = torch.randn(shape, generator=random, device=device).mul_(deviation)
        return weight.to(dtype).cpu()

    start = time.perf_counter()
    write_parameters(folder, expected, draw, tp=tp)
    training = {
        "general": {"step": 1},
        "model": {"init_method": {"std": 0.02}},
        "tokenizer": {"tokenizer_name_or_path": "none"},
        "tokens": {"sequence_length": WINDOW},
    }
    (folder / "model_config.json").write_text(json.dumps(config))
    (folder / "config.yaml").write_text(yaml.safe_dump(training))
    seconds = time.perf_counter() - start
    _age(folder)
    return seconds


def _age(folder: Path) -> None:
    """Set all times an hour back, so that loading does not wait for a writer."""
    past = time.time() - 3600
    for path in folder.rglob("*"):
        os.utime(path, (past, past))
