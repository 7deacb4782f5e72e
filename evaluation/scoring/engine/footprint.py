"""How much of a GPU's memory a model takes: its weights exactly, a forward pass by estimate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from evaluation.checkpoints import huggingface
from evaluation.checkpoints.architecture import read_architecture
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.mapping import expected_parameters
from evaluation.errors import ScoringError
from evaluation.scoring.engine.head import CHUNK_LOGITS

CONTEXT = 600 << 20
"""Bytes that CUDA, its libraries and the kernels take by themselves, rather too much."""


@dataclass(frozen=True)
class Footprint:
    """Bytes on a GPU; `step` and `logits` are for each token of a pass."""

    weights: int
    step: int
    logits: int

    def with_pass(self, tokens: int) -> int:
        """Bytes for scoring in passes of so many tokens, about."""
        logits = min(self.logits * tokens, 4 * CHUNK_LOGITS["cuda"])
        return CONTEXT + self.weights + self.step * tokens + logits


def footprint(checkpoint: Checkpoint, dtype: torch.dtype) -> Footprint:
    """Of a checkpoint in a dtype; raises CheckpointError if its shapes cannot be told.

    A pass holds, of one layer at a time, for each token some copies of the hidden state, two of
    them in float32 (the norm), queries, keys and values, and three times the width of the MLP.
    """
    config = checkpoint.model_config
    inner = config.get("text_config")
    shape = inner if isinstance(inner, dict) else config
    hidden = _number(shape, "hidden_size")
    mlp = max(_number(shape, "intermediate_size"), _experts_width(shape))
    step = dtype.itemsize * (8 * hidden + 3 * mlp) + 2 * 4 * hidden
    return Footprint(_elements(checkpoint) * dtype.itemsize, step, 4 * checkpoint.vocab_size)


def _elements(checkpoint: Checkpoint) -> int:
    if checkpoint.kind == "nanotron":
        sources = expected_parameters(read_architecture(checkpoint)).values()
        return sum(math.prod(source.shape) for source in sources)
    headers = huggingface.read_headers(checkpoint.path)
    return sum(math.prod(entry.shape) for one in headers for entry in one.tensors.values())


def _experts_width(shape: Mapping[str, Any]) -> int:
    """Widths of the experts that a token passes through together; 0 without experts."""
    width = _number(shape, "moe_intermediate_size")
    return width * _number(shape, "num_experts_per_tok")


def _number(shape: Mapping[str, Any], name: str) -> int:
    value = shape.get(name)
    return value if isinstance(value, int) else 0


def check_fits(checkpoint: Checkpoint, dtype: torch.dtype, *, share: float = 1.0) -> None:
    """Raises ScoringError where the weights (or a GPU's `share` of them) exceed the memory of it."""
    needed = int(footprint(checkpoint, dtype).weights * share) + CONTEXT
    _, total = torch.cuda.mem_get_info()
    if needed > total:
        raise ScoringError(too_large(checkpoint.path, dtype, needed, total))


def too_large(path: Path, dtype: torch.dtype, needed: int, total: int) -> str:
    """A sentence for a model that no such GPU can hold."""
    name = str(dtype).removeprefix("torch.")
    narrower = "set scoring.dtype: bfloat16, or " if dtype == torch.float32 else ""
    return (
        f"{path}: the model needs {gigabytes(needed)} of GPU memory in {name}, and the GPU "
        f"has {gigabytes(total)}; {narrower}give the job a GPU with more memory, "
        "or spread the model over several (scoring.gpus_per_checkpoint)"
    )


def gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
