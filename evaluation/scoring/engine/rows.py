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

from evaluation.scoring.engine.tries import Piece, Trie, build_trie
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
    inputs = [
        np.array((*request.context, *request.continuation[:-1]), dtype=np.int64)
        for request in requests
    ]
    trie = build_trie(inputs)
    asked: list[list[int]] = [[] for _ in trie.inputs]
    for request, place in enumerate(trie.place):
        asked[place].append(request)
    return Plan(requests, trie, asked)


def lay_out(plan: Plan, piece: Piece) -> Row:
    """Writes the inputs of a piece depth-first into one row."""
    tokens, depth = np.empty((2, piece.size), dtype=np.int64)
    end = np.full(piece.size, piece.size, dtype=np.int64)
    path = np.empty(max(len(plan.trie.inputs[member]) for member in piece.members), dtype=np.int64)
    queries, targets, owners = [], [], []
    cursor = length = 0
    last: int | None = None
    for member in piece.members:
        sequence = plan.trie.inputs[member]
        shared = plan.trie.common(last, member)
        end[path[shared:length]] = cursor  # what the last input added below the fork ends here
        length = len(sequence)
        stop = cursor + length - shared
        tokens[cursor:stop] = sequence[shared:]
        depth[cursor:stop] = np.arange(shared, length)
        path[shared:length] = np.arange(cursor, stop)
        cursor, last = stop, member
        for owner in plan.asked[member]:
            continuation = plan.requests[owner].continuation
            queries.append(path[length - len(continuation) : length].copy())
            targets.append(continuation)
            owners.append(owner)
    return Row(
        tokens=tokens,
        depth=depth,
        end=end,
        pair_query=np.concatenate(queries),
        pair_token=np.concatenate(targets, dtype=np.int64),
        owners=np.array(owners, dtype=np.int64),
        counts=np.array([len(target) for target in targets], dtype=np.int64),
    )
