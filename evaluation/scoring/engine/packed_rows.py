"""Rows of tokens as the model reads them: pieces of a trie laid out depth-first, or blocks of text.

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

from evaluation.scoring.engine.tries import (
    TOKEN_BYTES,
    Ints,
    Piece,
    Trie,
    build_trie,
    key_of,
    ranges,
)
from evaluation.scoring.engine.window import Request


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
    """The requests of a task as a trie, and what they ask for.

    `asked` are all requests in the order of their inputs, those of input i from `asked_from[i]` on;
    the continuation of request r are the `counts[r]` tokens of `targets` from `target_from[r]` on.
    """

    trie: Trie
    asked: Ints
    asked_from: Ints
    targets: Ints
    target_from: Ints
    counts: Ints


def plan_requests(requests: Sequence[Request]) -> Plan:
    """Merge the inputs of all requests (all tokens but the last) into one trie."""
    counts = np.array([len(request.continuation) for request in requests])
    flat = [token for request in requests for token in request.continuation]
    bounds = np.append(0, np.cumsum(counts))
    trie = build_trie(_contexts(requests), _all_but_last(key_of(flat), bounds))
    return Plan(
        trie,
        asked=np.argsort(trie.place, kind="stable"),
        asked_from=np.append(0, np.cumsum(np.bincount(trie.place, minlength=len(trie)))),
        targets=np.array(flat, dtype=np.int64),
        target_from=bounds[:-1],
        counts=counts,
    )


def _contexts(requests: Sequence[Request]) -> list[bytes]:
    """Return keys; candidates of a question share its context, which may have many tokens."""
    known = {id(request.context): request.context for request in requests}
    keys = {name: key_of(context) for name, context in known.items()}
    return [keys[id(request.context)] for request in requests]


def _all_but_last(key: bytes, bounds: Ints) -> list[bytes]:
    """Return the parts that are read of the key of all continuations, one after another."""
    begins, ends = (bounds[:-1] * TOKEN_BYTES).tolist(), ((bounds[1:] - 1) * TOKEN_BYTES).tolist()
    return [key[begin:end] for begin, end in zip(begins, ends, strict=True)]


def lay_out(plan: Plan, piece: Piece) -> Row:
    """Write the inputs of a piece depth-first into one row."""
    trie, members = plan.trie, piece.members
    path = _Path(trie, members)
    depth = np.repeat(path.shared - path.begins, path.sizes) + np.arange(path.size)
    first = trie.starts[members] - path.begins + path.shared
    asking = plan.asked_from[members + 1] - plan.asked_from[members]
    owners = plan.asked[ranges(plan.asked_from[members], asking)]
    counts = plan.counts[owners]
    inputs = np.repeat(np.arange(len(members)), asking)  # of the owners, by place in the row
    asked_depth = ranges(trie.lengths[members][inputs] - counts, counts)
    return Row(
        tokens=trie.tokens[np.repeat(first, path.sizes) + np.arange(path.size)].astype(np.int64),
        depth=depth,
        end=path.ends(depth),
        pair_query=path.find(np.repeat(inputs, counts), asked_depth),
        pair_token=plan.targets[ranges(plan.target_from[owners], counts)],
        owners=owners,
        counts=counts,
    )


def block_row(tokens: NDArray[np.integer], begins: NDArray[np.bool_], block: int) -> Row:
    """Return the row of a block of text (T,), in which a sequence begins where `begins` (T,) is true."""
    index = np.arange(len(tokens))
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(tokens))
    sequence = np.cumsum(begins) - 1
    predicted = np.flatnonzero(~begins)
    return Row(
        tokens=tokens.astype(np.int64),
        depth=index - starts[sequence],
        end=ends[sequence],
        pair_query=predicted - 1,
        pair_token=tokens[predicted].astype(np.int64),
        owners=np.array([block]),
        counts=np.array([len(predicted)]),
    )


class _Path:
    """The inputs of a row: from which depth on each is written, and where.

    What an input has in common with the last one stands with that, or one before. Whoever looks for
    it steps from input to input, only over those that cannot have it: for all tokens at once, as
    often as branches lie in branches.
    """

    def __init__(self, trie: Trie, members: Ints) -> None:
        first, last = int(members[0]), int(members[-1])
        self.shared = np.zeros_like(members)
        if first < last:
            between = trie.shared[first + 1 : last + 1]
            self.shared[1:] = np.minimum.reduceat(between, members[:-1] - first)
        self.sizes = trie.lengths[members] - self.shared
        self.size = int(self.sizes.sum())
        self.begins = np.cumsum(self.sizes) - self.sizes

        self._lower_before, self._lower_after = _lower(self.shared.tolist())

    def find(self, inputs: Ints, depth: Ints) -> Ints:
        """Return row indices of the tokens at some depth, each on the way to an input."""
        inputs = _stepped(inputs, self._lower_before, self.shared, depth)
        at: Ints = self.begins[inputs] + depth - self.shared[inputs]
        return at

    def ends(self, depth: Ints) -> Ints:
        """Find, for each token of the row at this depth, where its subtree ends."""
        after = np.repeat(np.arange(1, len(self.sizes) + 1), self.sizes)
        after = _stepped(after, self._lower_after, np.append(self.shared, -1), depth)
        ends: Ints = np.append(self.begins, self.size)[after]
        return ends


def _stepped(inputs: Ints, lower: Ints, shared: Ints, depth: Ints) -> Ints:
    """Go from each input by `lower` to the next that has less than `depth` in common with its last."""
    found = inputs.copy()
    far = np.flatnonzero(shared[found] > depth)
    while len(far):
        found[far] = lower[found[far]]
        far = far[shared[found[far]] > depth[far]]
    return found


def _lower(numbers: list[int]) -> tuple[Ints, Ints]:
    """Return for each number the index of the next one that is less: before it, -1 for none, and after it."""
    before: list[int] = []
    after = [len(numbers)] * len(numbers)
    waiting: list[int] = []  # for one that is less; they rise
    for index, number in enumerate(numbers):
        while waiting and numbers[waiting[-1]] > number:
            after[waiting.pop()] = index
        last = waiting[-1] if waiting else -1
        before.append(before[last] if waiting and numbers[last] == number else last)
        waiting.append(index)
    return np.array(before), np.array(after)
