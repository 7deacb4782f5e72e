"""Rows of tokens as the model reads them: pieces of a trie laid out depth-first.

A token at row index `kv` is visible from `q` where `kv <= q and q < end[kv]`, with `end[kv]` the
index at which the subtree of `kv` ends. Its position is its depth in the trie.

    A B C, A B D, A E      tokens  A B C D E
                           depth   0 1 2 2 1
                           end     5 4 3 4 5

Letters: S row length, Q queries (rows of the hidden state that the head needs), P pairs (a query
and a token whose log-probability after it is asked for).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.engine.tries import Piece, Trie, build_trie, key_of
from evaluation.scoring.engine.window import Request

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """One row. All arrays are int64.

    `pair_query` (P,) are row indices, `pair_token` (P,) the tokens asked for; the pairs belong to
    the requests `owners` in turn, `counts` of them each.
    """

    tokens: Ints  # (S,)
    depth: Ints  # (S,)
    end: Ints  # (S,)
    pair_query: Ints
    pair_token: Ints
    owners: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether every token sees all before it, at positions 0, 1, 2 …"""
        return bool((self.depth == np.arange(len(self))).all())


@dataclass(frozen=True)
class Plan:
    """The requests of a task as a trie; `asked[i]` are the requests whose input is i."""

    requests: Sequence[Request]
    trie: Trie
    asked: list[list[int]]


def plan_requests(requests: Sequence[Request]) -> Plan:
    """Merges the inputs of all requests (all tokens but the last) into one trie."""
    trie = build_trie(_keys(requests))
    asked: list[list[int]] = [[] for _ in trie.inputs]
    for request, place in enumerate(trie.place):
        asked[place].append(request)
    return Plan(requests, trie, asked)


def _keys(requests: Sequence[Request]) -> list[bytes]:
    """Of the inputs; candidates of a question share its context, which may have many tokens."""
    contexts: dict[int, bytes] = {}
    keys = []
    for request in requests:
        context = contexts.get(id(request.context))
        if context is None:
            context = contexts[id(request.context)] = key_of(request.context)
        keys.append(context + key_of(request.continuation[:-1]))
    return keys


def lay_out(plan: Plan, piece: Piece) -> Row:
    """Writes the inputs of a piece depth-first into one row."""
    path: list[int] = []  # row indices of the tokens from the root to the last one
    queries: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    counts: list[int] = []
    parts, begins, ends = [], [], _Ends()
    cursor = 0
    last: int | None = None
    for member in piece.members:
        sequence = plan.trie.inputs[member]
        shared = plan.trie.common(last, member)
        parts.append(sequence[shared:])
        begins.append(shared)
        ends.fork(cursor, shared, len(path))
        stop = cursor + len(sequence) - shared
        path[shared:] = range(cursor, stop)
        cursor, last = stop, member
        for owner in plan.asked[member]:
            continuation = plan.requests[owner].continuation
            queries += path[len(path) - len(continuation) :]
            targets += continuation
            owners.append(owner)
            counts.append(len(continuation))
    sizes = [len(part) for part in parts]
    starts = np.cumsum([0, *sizes[:-1]])
    return Row(
        tokens=np.concatenate(parts),
        depth=np.arange(cursor) - np.repeat(starts - begins, sizes),
        end=ends.all(cursor, len(path)),
        pair_query=np.array(queries, dtype=np.int64),
        pair_token=np.array(targets, dtype=np.int64),
        owners=np.array(owners, dtype=np.int64),
        counts=np.array(counts, dtype=np.int64),
    )


class _Ends:
    """Where the subtree of each token of a row ends, told fork by fork.

    The path from the root to the last token is made of runs of neighbouring tokens. A fork at some
    depth ends all of the path that is deeper, so a run is cut in two at most.
    """

    def __init__(self) -> None:
        self._path: list[tuple[int, int]] = []  # depth and row index at which a run begins
        self._ended: list[tuple[int, int, int]] = []  # row index, tokens, their end

    def fork(self, cursor: int, depth: int, length: int) -> None:
        """A path of `length` tokens goes on at row index `cursor` from `depth` on."""
        while self._path and length > depth:
            begin, index = self._path.pop()
            kept = max(depth - begin, 0)
            self._ended.append((index + kept, length - begin - kept, cursor))
            length = begin
            if kept:
                self._path.append((begin, index))
                break
        self._path.append((depth, cursor))

    def all(self, size: int, length: int) -> Ints:
        """(size,) for a row of `size` tokens whose last path has `length`."""
        self.fork(size, 0, length)
        _, counts, ends = zip(*sorted(self._ended), strict=True)
        return np.repeat(np.array(ends, dtype=np.int64), counts)
