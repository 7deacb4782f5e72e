"""Decide which inputs share a row: cut a prefix trie into pieces of one row each.

The sorted inputs, with the lengths of the prefixes that neighbours share, represent the trie: the
inputs below a node are a run of neighbours. A run that fits a row becomes a piece; a longer one is
divided at its shortest shared prefix. Then the pieces of each node's children are merged best-fit,
bottom-up: all pieces below a node need the same path from the root, which a row holds only once. The
pieces at the root are the rows.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Capacity = Callable[[Ints], Ints]
"""Function from lengths of shared prefixes to the most tokens of a row whose inputs share such a prefix."""

_TOKEN = np.dtype(">u4")


@dataclass(frozen=True)
class Trie:
    """Distinct inputs in lexicographic order, one after another in `tokens`.

    `shared[i]` is the number of leading tokens that inputs i and i - 1 have in common, 0 for i = 0;
    `place[k]` is the index here of the k-th of the given inputs.
    """

    tokens: NDArray[np.uint32]
    starts: Ints
    lengths: Ints
    shared: Ints
    place: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def input(self, index: int) -> NDArray[np.uint32]:
        """Return a view of the tokens of one input, by its index in lexicographic order."""
        return self.tokens[self.starts[index] : self.starts[index] + self.lengths[index]]


class Piece(NamedTuple):
    """Inputs that share one row, as runs of neighbours, and the tokens that they add below some node."""

    size: int
    runs: list[tuple[int, int]]

    @property
    def members(self) -> list[int]:
        """Indices of the inputs, ascending."""
        return [member for run in sorted(self.runs) for member in range(*run)]


def key_of(tokens: Sequence[int]) -> bytes:
    """Return bytes that sort like the tokens, four for each: keys of parts can be joined."""
    return struct.pack(f">{len(tokens)}I", *tokens)


def build_trie(keys: Sequence[bytes]) -> Trie:
    """Sort inputs, by `key_of` and none empty, and drop duplicates; `place` has the given order."""
    ordered = sorted(set(keys))
    index = {key: i for i, key in enumerate(ordered)}
    lengths = np.array([len(key) // _TOKEN.itemsize for key in ordered])
    return Trie(
        tokens=np.frombuffer(b"".join(ordered), dtype=_TOKEN),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        shared=np.array([0, *(_common(*neighbours) for neighbours in pairwise(ordered))]),
        place=np.array([index[key] for key in keys]),
    )


def _common(left: bytes, right: bytes) -> int:
    """Return the number of leading tokens that two keys have in common."""
    size = min(len(left), len(right))
    differing = int.from_bytes(left[:size]) ^ int.from_bytes(right[:size])
    return (8 * size - differing.bit_length()) // (8 * _TOKEN.itemsize)


@dataclass
class _Node:
    """A branching point: inputs `begin` to `stop` have `depth` tokens in common.

    `above` is its parent's depth; a row has `room` for tokens below it. `parts` are its children, in
    order: a piece if all inputs below a child fit a row, otherwise a node.
    """

    begin: int
    stop: int
    depth: int
    above: int
    room: int
    parts: "list[Piece | _Node]" = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def _divide(self, trie: Trie, before: Ints, capacity: Capacity) -> "list[_Node]":
        """Find its children, make pieces of those that fit a row, and return the others.

        `before[i]` is the number of tokens that inputs 0 to i - 1 have below the root, shared ones once.
        """
        here = slice(self.begin, self.stop)
        is_child = trie.shared[here] == self.depth
        is_child[0] = True
        begins = self.begin + np.flatnonzero(is_child)
        stops = np.append(begins[1:], self.stop)
        # The prefix that a child's inputs share is no longer than its first input.
        depths = np.minimum.reduceat(
            np.where(is_child, trie.lengths[here], trie.shared[here]), begins - self.begin
        )
        below = before[stops] - before[begins] + trie.shared[begins] - depths
        rooms = capacity(depths) - depths
        columns = (part.tolist() for part in (begins, stops, depths, below, rooms))
        for begin, stop, depth, size, room in zip(*columns, strict=True):
            if size <= room or stop - begin == 1:
                self.parts.append(Piece(size + depth - self.depth, [(begin, stop)]))
            else:
                self.parts.append(_Node(begin, stop, depth, self.depth, room))
        return [part for part in self.parts if isinstance(part, _Node)]

    def _join(self) -> None:
        """Make its pieces from its children's, each with the segment from its parent to it."""
        pieces: list[Piece] = []
        for part in self.parts:
            pieces += part.pieces if isinstance(part, _Node) else [part]
        segment = self.depth - self.above
        self.pieces = [
            Piece(piece.size + segment, piece.runs) for piece in _best_fit(pieces, self.room)
        ]


def pack(trie: Trie, capacity: Capacity) -> list[Piece]:
    """Cut a trie into rows.

    Inputs whose longest common prefix has d tokens share rows of at most `capacity(d)` tokens. A
    longer input has its own row.

    Args:
        capacity: Most tokens of a row, which must not fall as d grows.
    """
    before = np.append(0, np.cumsum(trie.lengths - trie.shared))
    at_root = np.zeros(1, dtype=np.int64)
    nodes = [_Node(0, len(trie), 0, 0, room=(capacity(at_root) + at_root).item())]
    for node in nodes:
        nodes += node._divide(trie, before, capacity)
    for node in reversed(nodes):  # children come after their parents
        node._join()
    return nodes[0].pieces


def _best_fit(pieces: list[Piece], room: int) -> list[Piece]:
    """Merge pieces by best-fit decreasing: each piece goes where the least room is left over.

    Pieces under construction are stored by the room that they have left. The bits of `rooms` mark the
    lists that are not empty, so bit operations find the smallest sufficient room.
    """
    if len(pieces) < 2:
        return pieces
    total = sum(piece.size for piece in pieces)
    if total <= room:
        return [Piece(total, [run for piece in pieces for run in piece.runs])]
    by_room: dict[int, list[Piece]] = {}
    too_large = []
    rooms = 0
    for piece in sorted(pieces, key=lambda piece: -piece.size):
        fitting = rooms >> piece.size
        if fitting:
            smallest = piece.size + (fitting & -fitting).bit_length() - 1
            other = by_room[smallest].pop()
            small, large = sorted((piece.runs, other.runs), key=len)
            large += small
            piece = Piece(piece.size + other.size, large)
            if not by_room[smallest]:
                rooms ^= 1 << smallest
        left = room - piece.size
        if left < 0:
            too_large.append(piece)
            continue
        by_room.setdefault(left, []).append(piece)
        rooms |= 1 << left
    return too_large + [piece for merged in by_room.values() for piece in merged]
