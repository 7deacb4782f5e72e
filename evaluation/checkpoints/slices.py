"""Which regions of a whole tensor a shard of it is, as Nanotron's metadata writes them.

A sharded file's metadata holds the whole tensor's `unsharded_shape` and `local_global_slices_pairs`,
`LOCAL#GLOBAL;…` with a side written `start,stop,step|…`: which region of the shard is which region of
the whole. Only these pairs tell how shards join: a shard of a query-key-value matrix holds a part of
each of the three.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.checkpoints.headers import Header
from evaluation.errors import CheckpointError

_MOST_CELLS = 1 << 20
"""Cells into which slices cut a tensor; a thousand ranks cut one into three thousand."""

Slices = tuple[tuple[int, int], ...]
"""A region of a tensor: (start, stop) of each dimension."""


@dataclass(frozen=True)
class SlicesPair:
    """A region of a shard and the region of the whole tensor that it is."""

    local: Slices
    whole: Slices


def unsharded_shape(header: Header) -> tuple[int, ...]:
    """Return the shape of a shard's whole tensor.

    It is written as `(128, 64)` or, by numpy 2, `(np.int64(128), 64)`.
    Args:
        header: Header of a sharded weight file.

    Returns:
        The shape that its metadata records.

    Raises:
        CheckpointError: The metadata holds no shape.
    """
    text = header.metadata.get("unsharded_shape", "")
    plain = re.sub(r"np\.int64\(([0-9]{1,18})\)", r"\1", text)
    if not re.fullmatch(r"\((?:[0-9]{1,18}(?:, ?[0-9]{1,18})*,?)?\)", plain):
        raise CheckpointError(
            f"{header.path}: its `unsharded_shape` {text[:80]!r} is not a shape; copy it again"
        )
    return tuple(int(number) for number in re.findall(r"[0-9]+", plain))


def parse_slices_pairs(
    path: Path, text: str, local_shape: tuple[int, ...], whole_shape: tuple[int, ...]
) -> tuple[SlicesPair, ...]:
    """Read a shard's `local_global_slices_pairs`.

    Args:
        path: The weight file, for messages.
        text: The pairs as the metadata writes them.
        local_shape: Shape of the shard.
        whole_shape: Shape of the whole tensor.

    Returns:
        The pairs, in the order of the text.

    Raises:
        CheckpointError: They cannot be read, or do not cover the shard exactly once.
    """
    pairs = []
    for part in text.split(";"):
        sides = part.split("#")
        if len(sides) != 2:
            raise _bad_slices(path, part)
        pair = SlicesPair(
            _slices(path, sides[0], local_shape), _slices(path, sides[1], whole_shape)
        )
        if [b - a for a, b in pair.local] != [b - a for a, b in pair.whole]:
            raise _bad_slices(path, part)
        pairs.append(pair)
    problem = coverage_problem([pair.local for pair in pairs], local_shape)
    if problem:
        raise CheckpointError(
            f"{path}: its slices do not fit its own {local_shape}: {problem}; copy it again"
        )
    return tuple(pairs)


def _slices(path: Path, text: str, shape: tuple[int, ...]) -> Slices:
    parts = text.split("|")
    if len(parts) != len(shape):
        raise _bad_slices(path, text)
    return tuple(_slice(path, part, size) for part, size in zip(parts, shape, strict=True))


def _slice(path: Path, text: str, size: int) -> tuple[int, int]:
    match = re.fullmatch(
        r"\s*(None|-?[0-9]{1,18})\s*,\s*(None|-?[0-9]{1,18})\s*,\s*(None|1)\s*", text
    )
    if match is None:
        raise _bad_slices(path, text)
    start, stop = (None if part == "None" else int(part) for part in match.groups()[:2])
    first = 0 if start is None else start + size * (start < 0)
    last = size if stop is None else stop + size * (stop < 0)
    if not 0 <= first < last <= size:
        raise _bad_slices(path, text)
    return first, last


def _bad_slices(path: Path, text: str) -> CheckpointError:
    return CheckpointError(
        f"{path}: its slices {text[:80]!r} are not regions of the tensor; copy the file again"
    )


def coverage_problem(regions: list[Slices], shape: tuple[int, ...]) -> str | None:
    """Return what keeps regions from covering every element exactly once.

    Their edges cut the tensor into a small grid of cells, none of which a region covers in part.

    Args:
        regions: Regions of the tensor, each within its shape.
        shape: The tensor's shape.

    Returns:
        The first cell that is missing or covered twice, or that there are too many; None if all is well.
    """
    edges = [sorted({0, size}) for size in shape]
    for region in regions:
        edges = [sorted({*known, *pair}) for known, pair in zip(edges, region, strict=True)]
    if math.prod(len(known) - 1 for known in edges) > _MOST_CELLS:
        return f"{len(regions)} regions, more than any trainer writes"
    places = [{edge: index for index, edge in enumerate(known)} for known in edges]
    counts = np.zeros([len(known) - 1 for known in edges], dtype=np.int32)
    for region in regions:
        counts[tuple(slice(p[a], p[b]) for p, (a, b) in zip(places, region, strict=True))] += 1
    wrong = np.argwhere(counts != 1)
    if not len(wrong):
        return None
    cell = [f"{known[i]}:{known[i + 1]}" for known, i in zip(edges, wrong[0], strict=True)]
    times = "is missing" if counts[tuple(wrong[0])] == 0 else "is there more than once"
    return f"[{', '.join(cell)}] {times}"
