"""Pack requests into rows that the model reads: pieces of a trie, written depth-first.

The token at row index `q` attends to that at `kv` if `kv <= q and q < end[kv]`, where `end[kv]` is
the index at which the subtree of `kv` ends. Its position is its depth in the trie.

    A B C, A B D, A E      tokens  A B C D E
                           depth   0 1 2 2 1
                           end     5 4 3 4 5

Letters: S row length, Q queries (rows of the hidden state that the head needs), P pairs (a query
and a token whose log-probability after it is requested).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

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


class Plan(Sequence[Request]):
    """Requests as flat arrays: their inputs (all tokens but the last) as a trie, and their continuations.

    As a sequence, it makes each request anew.

    Args:
        trie: Inputs; `place` has one for each request.
        targets: Tokens of all continuations, one after another.
        sizes: Number of tokens of each continuation.
        name: Returns the name of the request of an index, for messages.
    """

    def __init__(
        self, trie: Trie, targets: NDArray[np.uint32], sizes: Ints, name: Callable[[int], str]
    ) -> None:
        self.trie, self.targets, self.sizes, self.name = trie, targets, sizes, name
        owned = np.bincount(trie.place, minlength=len(trie))
        # Lists, as rows are made of single elements.
        self.shared: list[int] = trie.shared.tolist()
        self._tokens: list[int] = targets.tolist()
        self._stops: list[int] = np.append(0, np.cumsum(sizes)).tolist()
        self._by_input: list[int] = np.argsort(trie.place, kind="stable").tolist()
        self._owned: list[int] = np.append(0, np.cumsum(owned)).tolist()

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, index: int) -> Request: ...
    @overload
    def __getitem__(self, index: slice) -> list[Request]: ...
    def __getitem__(self, index: int | slice) -> Request | list[Request]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        tokens, continuation = self.trie.input(int(self.trie.place[index])), self.target(index)
        context = tokens[: len(tokens) + 1 - len(continuation)]
        return Request(tuple(context.tolist()), tuple(continuation), self.name(index))

    def target(self, index: int) -> list[int]:
        """Return the continuation of a request."""
        return self._tokens[self._stops[index] : self._stops[index + 1]]

    def owners(self, member: int) -> list[int]:
        """Return the indices of the requests of an input, ascending."""
        return self._by_input[self._owned[member] : self._owned[member + 1]]


def plan_requests(requests: Sequence[Request]) -> Plan:
    """Merge the inputs of requests, each with a context, into one trie; a plan is returned as it is."""
    if isinstance(requests, Plan):
        return requests
    # Candidates of a question share its context, which may have many tokens.
    contexts = {id(request.context): request.context for request in requests}
    keys = {name: key_of(context) for name, context in contexts.items()}
    trie = build_trie(
        [keys[id(request.context)] + key_of(request.continuation[:-1]) for request in requests]
    )
    targets = itertools.chain.from_iterable(request.continuation for request in requests)
    sizes = np.array([len(request.continuation) for request in requests])
    return Plan(trie, np.fromiter(targets, np.uint32), sizes, lambda index: requests[index].name)


def packed_row(plan: Plan, piece: Piece) -> PackedRow:
    """Write a piece's inputs depth-first into one row, whose pairs are all continuations' tokens."""
    trie, last = plan.trie, 0
    tokens: list[int] = []
    depth: list[int] = []
    end = [piece.size] * piece.size
    path: list[int] = []  # row indices of the last input's tokens
    owners: list[int] = []
    queries: list[int] = []
    targets: list[int] = []
    for member in piece.members:
        shared = min(plan.shared[last + 1 : member + 1]) if path else 0
        begin, last = len(tokens), member
        for at in path[shared:]:
            end[at] = begin
        tokens += trie.input(member)[shared:].tolist()
        path[shared:] = range(begin, len(tokens))
        depth += range(shared, len(path))
        for owner in plan.owners(member):
            continuation = plan.target(owner)
            owners.append(owner)
            queries += path[-len(continuation) :]
            targets += continuation
    columns = (tokens, depth, end, queries, targets, owners, plan.sizes[owners])
    return PackedRow(*(np.array(column, dtype=np.int64) for column in columns))
