"""Compute the GPU memory that a model needs: exactly for its weights, estimated for a forward pass."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from evaluation.checkpoints.format import Checkpoint, text_config
from evaluation.checkpoints.load import device_number
from evaluation.checkpoints.locations import Location
from evaluation.errors import ScoringError
from evaluation.scoring.engine.head import CHUNK_LOGITS

CONTEXT = 600 << 20
"""Upper estimate of the bytes that CUDA, its libraries and the kernels take by themselves."""


@dataclass(frozen=True)
class Footprint:
    """Bytes on the GPU that holds the most; `step` and `logits` are per token of a pass."""

    weights: int
    step: int
    logits: int

    def with_pass(self, tokens: int) -> int:
        """Estimate the bytes on the fullest GPU, with CUDA's own, in passes of this many tokens."""
        logits = min(self.logits * tokens, 4 * CHUNK_LOGITS["cuda"])
        return CONTEXT + self.weights + self.step * tokens + logits


def footprint(checkpoint: Checkpoint, dtype: torch.dtype, gpus: int = 1) -> Footprint:
    """Return the memory that a checkpoint needs on the fullest of its GPUs.

    For one layer at a time, a pass holds for each token: some copies of the hidden state, two of
    them in float32 (the norm), queries, keys and values, and three times the width of the MLP.

    Raises:
        CheckpointError: When its shapes are unknown.
    """
    shape = text_config(checkpoint.model_config)

    def number(name: str) -> int:
        value = shape.get(name)
        return value if isinstance(value, int) else 0

    hidden = number("hidden_size")
    # A token passes through several experts together.
    experts = number("moe_intermediate_size") * number("num_experts_per_tok")
    mlp = max(number("intermediate_size"), experts)
    step = dtype.itemsize * (8 * hidden + 3 * mlp) + 2 * 4 * hidden
    weights = max(_elements(checkpoint, gpus)) * dtype.itemsize
    return Footprint(weights, step, 4 * checkpoint.vocab_size)


def _elements(checkpoint: Checkpoint, gpus: int) -> list[int]:
    """Count the elements of the weights that each GPU holds."""
    layers, elements = checkpoint.layer_count, [0] * gpus
    for name, shape in _shapes(checkpoint):
        elements[device_number(name, layers, gpus) if gpus > 1 else 0] += math.prod(shape)
    return elements


def _shapes(checkpoint: Checkpoint) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield every weight's name in transformers and its shape; a joined weight has its first part's name."""
    if checkpoint.kind == "nanotron":
        for source in checkpoint.architecture.parameters().values():
            yield source.targets[0].name, source.shape
        return
    for header in checkpoint.headers:
        for name, entry in header.tensors.items():
            yield name, entry.shape


def check_fits(checkpoint: Checkpoint, dtype: torch.dtype, devices: Sequence[torch.device]) -> None:
    """Raise ScoringError if the weights exceed the total memory of GPUs, whatever other processes hold."""
    for elements, device in zip(_elements(checkpoint, len(devices)), devices, strict=True):
        needed = elements * dtype.itemsize + CONTEXT
        _, total = torch.cuda.mem_get_info(device)
        if needed > total:
            raise ScoringError(too_large(checkpoint.path, dtype, needed, total))


def too_large(path: Location, dtype: torch.dtype, needed: int, total: int) -> str:
    """Return a sentence for a model that needs more bytes than such a GPU has."""
    name = str(dtype).removeprefix("torch.")
    narrower = "set scoring.dtype: bfloat16, or " if dtype == torch.float32 else ""
    return (
        f"{path}: the model needs {gigabytes(needed)} of GPU memory in {name}, but the GPU "
        f"has {gigabytes(total)}; {narrower}give the job a GPU with more memory, "
        "or distribute the model over several (scoring.gpus_per_checkpoint)"
    )


def gigabytes(size: float) -> str:
    """Return bytes in units of 10^9, with one decimal."""
    return f"{size / 1e9:,.1f} GB"
