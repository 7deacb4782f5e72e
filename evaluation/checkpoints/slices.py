"""Regions of tensors, as Nanotron writes them into a shard's metadata."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.checkpoints.headers import Header
from evaluation.errors import CheckpointError

Box = tuple[tuple[int, int], ...]
"""A region of a tensor: (start, stop) of each dimension."""


_MOST_CELLS = 1 << 20
"""Cells into which regions cut a tensor; a thousand ranks cut one into three thousand."""


@dataclass(frozen=True)
class Piece:
    """A region of a shard and the region of the whole tensor that it is."""

    local: Box
    whole: Box


def unsharded_shape(header: Header) -> tuple[int, ...]:
    """Shape of the whole tensor, written as `(128, 64)` or, by numpy 2, `(np.int64(128), 64)`."""
    text = header.metadata.get("unsharded_shape", "")
    plain = re.sub(r"np\.int64\(([0-9]{1,18})\)", r"\1", text)
    if not re.fullmatch(r"\((?:[0-9]{1,18}(?:, ?[0-9]{1,18})*,?)?\)", plain):
        raise CheckpointError(
            f"{header.path}: its `unsharded_shape` {text[:80]!r} is not a shape; copy it again"
        )
    return tuple(int(number) for number in re.findall(r"[0-9]+", plain))


def parse_pieces(
    path: Path, text: str, local_shape: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Piece, ...]:
    """Reads `LOCAL#GLOBAL;…`, a side being `start,stop,step|…` with one slice per dimension."""
    pieces = []
    for pair in text.split(";"):
        sides = pair.split("#")
        if len(sides) != 2:
            raise _bad_slices(path, pair)
        piece = Piece(_box(path, sides[0], local_shape), _box(path, sides[1], shape))
        if extents(piece.local) != extents(piece.whole):
            raise _bad_slices(path, pair)
        pieces.append(piece)
    problem = uncovered([piece.local for piece in pieces], local_shape)
    if problem:
        raise CheckpointError(
            f"{path}: its slices do not fit its own {local_shape}: {problem}; copy it again"
        )
    return tuple(pieces)


def extents(box: Box) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in box)


def _box(path: Path, text: str, shape: tuple[int, ...]) -> Box:
    parts = text.split("|")
    if len(parts) != len(shape):
        raise _bad_slices(path, text)
    return tuple(_range(path, part, size) for part, size in zip(parts, shape, strict=True))


def _range(path: Path, text: str, size: int) -> tuple[int, int]:
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


def uncovered(boxes: list[Box], shape: tuple[int, ...]) -> str | None:
    """What keeps the boxes from covering every element exactly once; None if nothing.

    The boxes' edges cut the tensor into a small grid of cells, none of which a box covers in part.
    """
    edges = [sorted({0, size}) for size in shape]
    for box in boxes:
        edges = [sorted({*known, *pair}) for known, pair in zip(edges, box, strict=True)]
    if math.prod(len(known) - 1 for known in edges) > _MOST_CELLS:
        return f"{len(boxes)} regions, more than any trainer writes"
    places = [{edge: index for index, edge in enumerate(known)} for known in edges]
    counts = np.zeros([len(known) - 1 for known in edges], dtype=np.int32)
    for box in boxes:
        counts[tuple(slice(p[a], p[b]) for p, (a, b) in zip(places, box, strict=True))] += 1
    wrong = np.argwhere(counts != 1)
    if not len(wrong):
        return None
    cell = [f"{known[i]}:{known[i + 1]}" for known, i in zip(edges, wrong[0], strict=True)]
    times = "is missing" if counts[tuple(wrong[0])] == 0 else "is there more than once"
    return f"[{', '.join(cell)}] {times}"
