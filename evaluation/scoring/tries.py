"""Which inputs share a row: a prefix trie, cut into pieces that fit the row budget.

Sorted inputs and the lengths of the prefixes that neighbours share *are* the trie. One pass over
them visits its nodes bottom-up. At each node the pieces of its children are merged best-fit, for
below a node all of them need the same path from the root, which a row holds once. What is left
at the root are the rows. Time is linear in the tokens, but for the sort.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]


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


def build_trie(inputs: Sequence[Tokens]) -> Trie:
    """Sorts inputs, none of them empty, and drops what is there twice."""
    keys = [tokens.astype(">u4").tobytes() for tokens in inputs]  # compare as the tokens do
    first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    ordered = sorted(first)
    index = {key: i for i, key in enumerate(ordered)}
    distinct = [inputs[first[key]] for key in ordered]
    shared = [shared_prefix(a, b) for a, b in itertools.pairwise(distinct)]
    return Trie(distinct, [0, *shared][: len(distinct)], [index[key] for key in keys])


class _Node:
    """A branching point: its depth, its longest input below, and the pieces of its children."""

    __slots__ = ("depth", "longest", "pieces")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.longest = depth
        self.pieces: list[Piece] = []

    def absorb(self, child: "_Node", budget: int) -> None:
        """Takes a finished child's pieces, each now with the segment that leads to the child."""
        segment = child.depth - self.depth
        room = max(budget, child.longest) - child.depth
        self.longest = max(self.longest, child.longest)
        self.pieces += [
            Piece(piece.size + segment, piece.members) for piece in _best_fit(child.pieces, room)
        ]


def pack(trie: Trie, budget: int) -> list[Piece]:
    """Cuts a trie into rows of at most `budget` tokens, or of one input where that is longer.

    The members of a row are in ascending order.
    """
    root = _Node(0)
    stack = [root]
    for index, (tokens, shared) in enumerate(zip(trie.inputs, trie.shared, strict=True)):
        _close(stack, shared, budget)
        leaf = _Node(len(tokens))
        leaf.pieces.append(Piece(0, [index]))
        stack.append(leaf)
    _close(stack, 0, budget)
    rows = _best_fit(root.pieces, max(budget, root.longest))
    return [_measured(trie, sorted(row.members)) for row in rows]


def _measured(trie: Trie, members: list[int]) -> Piece:
    """A row with its true size: where a long input made room that nodes below it did not have,
    pieces of one child came together after all, and the path to it was counted twice."""
    earlier: list[int | None] = [None, *members]
    fresh = (
        len(trie.inputs[member]) - trie.common(last, member)
        for last, member in zip(earlier, members, strict=False)
    )
    return Piece(sum(fresh), members)


def _close(stack: list[_Node], depth: int, budget: int) -> None:
    """Finishes all nodes below `depth`, making the branching point there if there is none."""
    while stack[-1].depth > depth:
        child = stack.pop()
        if stack[-1].depth < depth:
            stack.append(_Node(depth))
        stack[-1].absorb(child, budget)


def _best_fit(pieces: list[Piece], capacity: int) -> list[Piece]:
    """Best-fit decreasing: each piece goes where the least room is left over.

    Pieces under construction are kept by the room they have left; the bits of `rooms` tell which
    lists are not empty, so that the smallest sufficient one is found by bit operations.
    """
    if len(pieces) < 2:
        return pieces
    by_room: dict[int, list[Piece]] = {}
    too_large = []
    rooms = 0
    for piece in sorted(pieces, key=lambda piece: -piece.size):
        fitting = rooms >> piece.size
        if fitting:
            room = piece.size + (fitting & -fitting).bit_length() - 1
            piece = _merge(by_room[room].pop(), piece)
            if not by_room[room]:
                rooms ^= 1 << room
        left = capacity - piece.size
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
