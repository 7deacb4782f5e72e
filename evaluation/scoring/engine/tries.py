"""Which inputs share a row: a prefix trie, cut into pieces of a row each.

Sorted inputs and the lengths of the prefixes that neighbours share *are* the trie. One pass over
them visits its nodes bottom-up. At each node the pieces of its children are merged best-fit, for
below a node all of them need the same path from the root, which a row holds once. What is left
at the root are the rows. Time is linear in the tokens, but for the sort.
"""

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]
Capacity = Callable[[int], int]
"""Tokens that a row may hold whose inputs share a prefix of that many tokens."""


class Trie(NamedTuple):
    """Distinct inputs in lexicographic order.

    `shared[i]` is how many leading tokens input i has in common with input i - 1, 0 for the first;
    `place[k]` is where the k-th of the given inputs went.
    """

    inputs: list[Tokens]
    shared: list[int]
    place: list[int]

    def common(self, last: int | None, member: int) -> int:
        """How many leading tokens an input has in common with an earlier one, if there is one."""
        if last is None:
            return 0
        if last == member - 1:
            return self.shared[member]
        return shared_prefix(self.inputs[last], self.inputs[member])


class Piece(NamedTuple):
    """Inputs (by index) that go into one row, and how many tokens they add below some node."""

    size: int
    members: list[int]


def shared_prefix(a: Tokens, b: Tokens) -> int:
    """How many leading tokens `a` and `b` have in common."""
    length = min(len(a), len(b))
    differs = a[:length] != b[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length


def key_of(tokens: Sequence[int]) -> bytes:
    """Bytes that compare as the tokens do; of tokens in a row, the keys are joined."""
    return struct.pack(f">{len(tokens)}I", *tokens)


def build_trie(keys: Sequence[bytes]) -> Trie:
    """Sorts inputs, none of them empty, and drops what is there twice; `keys` are by `key_of`."""
    ordered = sorted(set(keys))
    index = {key: i for i, key in enumerate(ordered)}
    flat = np.frombuffer(b"".join(ordered), dtype=">u4").astype(np.int64)
    stops = np.cumsum([len(key) // 4 for key in ordered]).tolist()
    distinct = [flat[a:b] for a, b in itertools.pairwise([0, *stops])]
    shared = [shared_prefix(a, b) for a, b in itertools.pairwise(distinct)]
    return Trie(distinct, [0, *shared][: len(distinct)], [index[key] for key in keys])


class _Node:
    """A branching point: its depth, and the pieces of its children so far."""

    __slots__ = ("depth", "pieces")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.pieces: list[Piece] = []

    def absorb(self, child: "_Node", capacity: Capacity) -> None:
        """Takes a finished child's pieces, each now with the segment that leads to the child."""
        segment, pieces = child.depth - self.depth, child.pieces
        if len(pieces) > 1:
            pieces = _best_fit(pieces, capacity(child.depth) - child.depth)
        self.pieces += [Piece(piece.size + segment, piece.members) for piece in pieces]


def pack(trie: Trie, capacity: Capacity) -> list[Piece]:
    """Cuts a trie into rows; the members of each are in ascending order.

    Inputs that have a prefix of d tokens in common, and no more, come together in rows of at most
    `capacity(d)` tokens, which must not fall as d grows. A longer input has a row of its own.
    """
    root = _Node(0)
    stack = [root]
    for index, (tokens, shared) in enumerate(zip(trie.inputs, trie.shared, strict=True)):
        _close(stack, shared, capacity)
        leaf = _Node(len(tokens))
        leaf.pieces.append(Piece(0, [index]))
        stack.append(leaf)
    _close(stack, 0, capacity)
    return [Piece(row.size, sorted(row.members)) for row in _best_fit(root.pieces, capacity(0))]


def _close(stack: list[_Node], depth: int, capacity: Capacity) -> None:
    """Finishes all nodes below `depth`, making the branching point there if there is none."""
    while stack[-1].depth > depth:
        child = stack.pop()
        if stack[-1].depth < depth:
            stack.append(_Node(depth))
        stack[-1].absorb(child, capacity)


def _best_fit(pieces: list[Piece], room: int) -> list[Piece]:
    """Best-fit decreasing: each piece goes where the least room is left over.

    Pieces under construction are kept by the room they have left; the bits of `rooms` tell which
    lists are not empty, so that the smallest sufficient one is found by bit operations.
    """
    if len(pieces) < 2:
        return pieces
    total = sum(piece.size for piece in pieces)
    if total <= room:  # as at most nodes
        return [Piece(total, [member for piece in pieces for member in piece.members])]
    by_room: dict[int, list[Piece]] = {}
    too_large = []
    rooms = 0
    for piece in sorted(pieces, key=lambda piece: -piece.size):
        fitting = rooms >> piece.size
        if fitting:
            smallest = piece.size + (fitting & -fitting).bit_length() - 1
            piece = _merge(by_room[smallest].pop(), piece)
            if not by_room[smallest]:
                rooms ^= 1 << smallest
        left = room - piece.size
        if left < 0:
            too_large.append(piece)
            continue
        by_room.setdefault(left, []).append(piece)
        rooms |= 1 << left
    return too_large + [piece for kept in by_room.values() for piece in kept]


def _merge(a: Piece, b: Piece) -> Piece:
    large, small = (a, b) if len(a.members) >= len(b.members) else (b, a)
    large.members.extend(small.members)
    return Piece(a.size + b.size, large.members)
