"""Shards read straight into a model's parameters, a chunk of rows at a time."""

import io
import math
from collections.abc import Iterator

import torch
from torch import nn

from evaluation.checkpoints.mapping import Source, Target, half_split_row
from evaluation.checkpoints.shards import Shard
from evaluation.checkpoints.slices import Box
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import check_regular

_CHUNK_BYTES = 16 << 20
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
}


def copy_shard(shard: Shard, source: Source, parameters: dict[str, nn.Parameter]) -> None:
    """Copies a shard's regions to the parameters of the transformers model that take them."""
    for first, rows in _row_chunks(shard):
        stop = first + len(rows)
        for piece in shard.pieces:
            (start, end), *others = piece.local
            low, high = max(start, first), min(end, stop)
            if low >= high:
                continue
            values = rows[low - first : high - first]
            values = values[(slice(None), *(slice(*pair) for pair in others))]
            top = piece.whole[0][0] + low - start
            _copy_rows(values, ((top, top + high - low), *piece.whole[1:]), source, parameters)


def _row_chunks(shard: Shard) -> Iterator[tuple[int, torch.Tensor]]:
    """Consecutive rows of a shard (first row, rows), at most a chunk at a time or one row."""
    entry = shard.entry
    dtype = _DTYPES[entry.dtype]
    row_bytes = math.prod(entry.shape[1:]) * dtype.itemsize
    step = max(1, _CHUNK_BYTES // row_bytes)
    try:
        check_regular(shard.path)
        with open(shard.path, "rb", buffering=0) as file:
            file.seek(entry.start)
            for first in range(0, entry.shape[0], step):
                number = min(step, entry.shape[0] - first)
                rows = torch.empty((number, *entry.shape[1:]), dtype=dtype)
                _read_into(rows, file, shard)
                yield first, rows
    except OSError as error:
        raise CheckpointError(
            f"{shard.path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None


def _read_into(rows: torch.Tensor, file: io.FileIO, shard: Shard) -> None:
    buffer = rows.view(torch.uint8).numpy().reshape(-1)
    done = 0
    while done < len(buffer):
        count = file.readinto(buffer[done:].data)
        if not count:
            raise IncompleteCheckpoint(f"{shard.path}: became shorter while it was read; rerun")
        done += count


def _copy_rows(
    values: torch.Tensor, place: Box, source: Source, parameters: dict[str, nn.Parameter]
) -> None:
    """Copies a region of the whole Nanotron tensor to where it belongs."""
    (top, bottom), *others = place
    columns = tuple(slice(*pair) for pair in others)
    for target in source.targets:
        low, high = max(top, target.start), min(bottom, target.stop)
        if low >= high:
            continue
        parameter = parameters[target.name]
        region = (parameter.transpose(1, 2) if target.transposed else parameter).detach()
        rows = _converted(values[low - top : high - top], target, parameter)
        low, high = low - target.start, high - target.start
        if target.interleaved_head is None:
            region[(slice(low, high), *columns)].copy_(rows)
        else:
            order = [half_split_row(row, target.interleaved_head) for row in range(low, high)]
            index = torch.tensor(order, device=region.device)
            region[(slice(None), *columns)].index_copy_(0, index, rows)


def _converted(values: torch.Tensor, target: Target, like: torch.Tensor) -> torch.Tensor:
    if target.divisor != 1.0:
        values = values.double() / target.divisor
    return values.to(device=like.device, dtype=like.dtype)
