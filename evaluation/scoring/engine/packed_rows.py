"""Pack requests into rows that the model reads: pieces of a trie, written depth-first.

The token at row index `q` attends to that at `kv` if `kv <= q and q < end[kv]`, where `end[kv]` is
the index at which the subtree of `kv` ends. Its position is its depth in the trie.

    A B C, A B D, A E      tokens  A B C D E
                           depth   0 1 2 2 1
                           end     5 4 3 4 5

Letters: S row length, Q queries (rows of the hidden state that the head needs), P pairs (a query
and a token whose log-probability after it is requested).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.scoring.engine.tries import Ints, Piece, Trie, build_trie, key_of
from evaluation.scoring.engine.window import Request


@dataclass(frozen=True)
class PackedRow:
    """A packed row. All arrays are int64.

    `pair_query` (P,) are row indices, `pair_token` (P,) the tokens to score. The first `counts[0]`
    pairs belong to the request `owners[0]`, the next `counts[1]` to `owners[1]`, and so on.
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
        """Whether the row is one plain sequence, at positions 0, 1, 2 …"""
        return bool((self.depth == np.arange(len(self))).all())


@dataclass(frozen=True)
class Plan:
    """The requests of a task, their inputs as a trie, and the requests of each input."""

    requests: Sequence[Request]
    trie: Trie
    owners: list[list[int]]


def plan_requests(requests: Sequence[Request]) -> Plan:
    """Merge the inputs of all requests (all tokens but the last) into one trie.

    Args:
        requests: Requests that fit the context window, none without a context.

    Returns:
        The trie, and the requests that each input belongs to.
    """
    # Candidates of a question share its context, which may have many tokens.
    contexts = {id(one.context): one.context for one in requests}
    keys = {name: key_of(context) for name, context in contexts.items()}
    trie = build_trie([keys[id(one.context)] + key_of(one.continuation[:-1]) for one in requests])
    owners: list[list[int]] = [[] for _ in range(len(trie))]
    for owner, place in enumerate(trie.place.tolist()):
        owners[place].append(owner)
    return Plan(requests, trie, owners)


def packed_row(plan: Plan, piece: Piece) -> PackedRow:
    """Write the inputs of a piece depth-first into one row.

    Args:
        piece: Inputs that share the row.

    Returns:
        The row, whose pairs are all tokens of the continuations.
    """
    trie, last = plan.trie, 0
    tokens: list[int] = []
    depth: list[int] = []
    end = [piece.size] * piece.size
    path: list[int] = []  # row indices of the last input's tokens
    owners: list[int] = []
    queries: list[int] = []
    targets: list[int] = []
    for member in piece.members:
        shared = int(trie.shared[last + 1 : member + 1].min()) if path else 0
        begin, last = len(tokens), member
        for at in path[shared:]:
            end[at] = begin
        tokens += trie.input(member)[shared:].tolist()
        path[shared:] = range(begin, len(tokens))
        depth += range(shared, len(path))
        for owner in plan.owners[member]:
            continuation = plan.requests[owner].continuation
            owners.append(owner)
            queries += path[-len(continuation) :]
            targets += continuation
    counts = [len(plan.requests[owner].continuation) for owner in owners]
    columns = (tokens, depth, end, queries, targets, owners, counts)
    return PackedRow(*(np.array(column, dtype=np.int64) for column in columns))
