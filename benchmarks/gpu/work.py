"""Count the necessary arithmetic of requests, and measure the device's peak speed.

Necessary is the least that any method can do: each distinct prefix of the requests is read once, and
the head runs once at each distinct position whose logits are needed. Padding, repeated prefixes and
unused logits do not count, so waste cannot raise a share of the peak.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.gpu.models import Size
from benchmarks.measure import measure
from evaluation.scoring.engine.packing import PackedRows, key_of
from evaluation.scoring.window import Request


@dataclass(frozen=True)
class Work:
    """Distinct tokens, pairs of a token and one that it attends to (itself included), and queries."""

    tokens: int
    pairs: int
    queries: int

    def flops(self, size: Size) -> float:
        """Return the FLOPs: two per weight and token, four per pair and channel of each head and layer."""
        attention = 4 * size.layers * size.heads * size.head_dim
        return (
            2.0 * size.body * self.tokens
            + attention * self.pairs
            + 2.0 * size.hidden * size.vocabulary * self.queries
        )


def of_requests(requests: Sequence[Request]) -> Work:
    sequences = [
        (key_of((*one.context, *one.continuation[:-1])), key_of(one.continuation))
        for one in requests
    ]
    rows = PackedRows(sequences, lambda shared: shared + sum(len(key) for key, _ in sequences))
    batch = rows.batch([0])
    return Work(batch.tokens.size, int((batch.depth + 1).sum()), len({*batch.query.tolist()}))


def of_blocks(tokens: torch.Tensor, starts: torch.Tensor | None = None) -> Work:
    """Return the work of blocks (blocks, length): each is one sequence, or divided at flat positions."""
    blocks, length = tokens.shape
    begins = np.zeros(blocks * length, dtype=np.bool_)
    begins[::length] = True
    if starts is not None:
        begins[starts.numpy()] = True
    lengths = np.diff(np.append(np.flatnonzero(begins), blocks * length))
    pairs = int((lengths * (lengths + 1) // 2).sum())
    return Work(blocks * length, pairs, blocks * length - len(lengths))


def matmul_peak(size: Size, rows: int, device: torch.device, dtype: torch.dtype) -> float:
    """Return the FLOP/s of products of `rows` tokens with all of the model's matrices."""
    shapes = [*size.layer_shapes * size.layers, (size.hidden, size.vocabulary)]
    seconds = {shape: _seconds(rows, *shape, device, dtype) for shape in set(shapes)}
    flops = sum(2.0 * rows * inputs * outputs for inputs, outputs in shapes)
    return flops / sum(seconds[shape] for shape in shapes)


def _seconds(
    rows: int, inputs: int, outputs: int, device: torch.device, dtype: torch.dtype
) -> float:
    """Return the seconds of one product; several run at a time to hide the cost of launches."""
    times = 20 if device.type == "cuda" else 1
    a = torch.randn(rows, inputs, device=device, dtype=dtype)
    weight = torch.randn(outputs, inputs, device=device, dtype=dtype)
    out = torch.mm(a, weight.T)

    def run() -> None:
        for _ in range(times):
            torch.mm(a, weight.T, out=out)

    return min(measure(device, run).seconds for _ in range(3)) / times
