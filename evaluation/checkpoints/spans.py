"""Which region of which shard goes where: all that is to be read for a model, or for a rank's part.

A model may be spread over several processes; each then holds of most parameters one part along one
dimension, and reads no more of the files than that.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from evaluation.checkpoints.headers import DTYPE_BYTES
from evaluation.checkpoints.mapping import Source, Target
from evaluation.checkpoints.shards import Shard
from evaluation.checkpoints.slices import Box, Piece

SMALLEST_RUN = 4096
"""Bytes of a row that are read by themselves; of rows of which less is asked for all is read."""


class Kept(NamedTuple):
    """What a process holds of a parameter: these ranges along a dimension, one after the other."""

    dimension: int
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Span:
    """A region of a shard's tensor and where it goes.

    `place` is the region among the rows that the target takes, in the order of the shard's
    dimensions; what a process holds of them begins `shift` later along `dimension`.
    """

    shard: Shard
    local: Box
    target: Target
    place: Box
    dimension: int
    shift: int

    @property
    def runs(self) -> bool:
        """Whether of each row a part is read that lies in one piece, and not all of the row."""
        shape = self.shard.entry.shape
        if len(shape) < 2 or self.local[1] == (0, shape[1]):
            return False
        return self.local[2:] == _whole(shape[2:]) and self._run_bytes >= SMALLEST_RUN

    @property
    def read_shape(self) -> tuple[int, ...]:
        """Shape of what is read."""
        (first, stop), shape = self.local[0], self.shard.entry.shape
        if not self.runs:
            return stop - first, *shape[1:]
        return stop - first, self.local[1][1] - self.local[1][0], *shape[2:]

    @property
    def row_bytes(self) -> int:
        return math.prod(self.read_shape[1:]) * DTYPE_BYTES[self.shard.entry.dtype]

    @property
    def bytes(self) -> int:
        return self.read_shape[0] * self.row_bytes

    @property
    def _run_bytes(self) -> int:
        (start, stop), entry = self.local[1], self.shard.entry
        return (stop - start) * math.prod(entry.shape[2:]) * DTYPE_BYTES[entry.dtype]

    def cut(self, most: int) -> "Iterator[Span]":
        """The same in parts of whole rows, of at most so many bytes or one row."""
        step = max(1, most // max(1, self.row_bytes))
        (first, stop), (top, _) = self.local[0], self.place[0]
        for row in range(first, stop, step):
            end = min(stop, row + step)
            local = ((row, end), *self.local[1:])
            place = ((top + row - first, top + end - first), *self.place[1:])
            yield replace(self, local=local, place=place)


def spans(shard: Shard, source: Source, kept: Mapping[str, Kept]) -> Iterator[Span]:
    """All that is to be read of a shard; parameters that `kept` does not name are taken whole."""
    for piece in shard.pieces:
        for target in source.targets:
            for dimension, start, stop, shift in _held(target, kept.get(target.name), source):
                bounds = list(_whole(source.shape))
                bounds[0] = (target.start, target.stop)
                offset = target.start if dimension == 0 else 0
                low, high = bounds[dimension]
                bounds[dimension] = (max(low, start + offset), min(high, stop + offset))
                part = _overlap(piece, tuple(bounds))
                if part is None:
                    continue
                (top, bottom), *others = part.whole
                place = ((top - target.start, bottom - target.start), *others)
                yield Span(shard, part.local, target, place, dimension, shift)


def _held(target: Target, kept: Kept | None, source: Source) -> Iterator[tuple[int, int, int, int]]:
    """(dimension of the source, start, stop, shift) of each range, along it, that is held."""
    if kept is None:
        yield 0, 0, target.stop - target.start, 0
        return
    dimension = kept.dimension % len(source.shape)
    if target.transposed and dimension:
        dimension = 3 - dimension
    held = 0
    for start, stop in kept.ranges:
        yield dimension, start, stop, held - start
        held += stop - start


def _overlap(piece: Piece, bounds: Box) -> Piece | None:
    """The part of a piece within these bounds of the whole tensor; None if there is none."""
    local, whole = [], []
    for (first, _), (start, stop), (low, high) in zip(
        piece.local, piece.whole, bounds, strict=True
    ):
        begin, end = max(start, low), min(stop, high)
        if begin >= end:
            return None
        local.append((first + begin - start, first + end - start))
        whole.append((begin, end))
    return Piece(tuple(local), tuple(whole))


def _whole(shape: tuple[int, ...]) -> Box:
    return tuple((0, size) for size in shape)
