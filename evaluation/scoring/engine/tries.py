"""Pack sequences into rows of a forward pass, so that a prefix which several share is read once.

The token at row index `q` attends to that at `kv` if `kv <= q and q < end[kv]`. Its position is its
depth: the number of tokens before it in its sequence.

    A B C, A B D, A E      tokens  A B C D E
                           depth   0 1 2 2 1
                           end     5 4 3 4 5

Letters: B rows, S tokens of a row, P pairs of a query (a row index) and a token whose log-probability
after it is wanted, Q distinct queries.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Capacity = Callable[[Ints], Ints]
"""Function from lengths of shared prefixes to the most tokens of a row whose sequences share these."""

_TOKEN = np.dtype(">u4")
"""Big-endian, so that bytes sort like the tokens."""


class PackedRow(NamedTuple):
    """A packed row; `owner` is the index of the sequence to which each pair belongs."""

    tokens: Ints  # (S,)
    depth: Ints  # (S,)
    end: Ints  # (S,)
    query: Ints  # (P,)
    target: Ints  # (P,)
    owner: Ints  # (P,)

    @property
    def is_chain(self) -> bool:
        """Whether the row is one plain sequence."""
        return bool(self.depth[-1] == len(self.depth) - 1)

    def before(self, query: int) -> Ints:
        """Return the row indices of the sequence that ends with a query."""
        return np.flatnonzero(self.end[: query + 1] > query)


def chain(tokens: Ints, query: Ints, target: Ints, owner: int) -> PackedRow:
    """Return the row of one plain sequence."""
    size = len(tokens)
    owners = np.full(len(query), owner)
    return PackedRow(tokens, np.arange(size), np.full(size, size), query, target, owners)


class PackedInputs:
    """Inputs, sorted, and cut into runs of neighbours that share a row each.

    A row begins where it would get longer than `capacity` allows for the prefix that would have to be
    read again; a longer input has its own row. `targets` are predicted after the last tokens of each.
    """

    def __init__(
        self, inputs: Iterable[bytes], targets: Sequence[bytes], capacity: Capacity
    ) -> None:
        self._targets = targets
        self._owners: dict[bytes, list[int]] = {}
        for owner, key in enumerate(inputs):
            self._owners.setdefault(key, []).append(owner)
        self._keys = sorted(self._owners)
        self._shared = [common(*pair) for pair in pairwise([b"", *self._keys])]
        most = capacity(np.array(self._shared, np.int64)).tolist()
        self.lengths: list[int] = []
        """Tokens of each row."""
        self._bounds: list[int] = []
        for index, (key, shared) in enumerate(zip(self._keys, self._shared, strict=True)):
            length = len(key) // _TOKEN.itemsize
            if self.lengths and self.lengths[-1] + length - shared <= most[index]:
                self.lengths[-1] += length - shared
            else:
                self.lengths.append(length)
                self._bounds.append(index)
        self._bounds.append(len(self._keys))

    def row(self, index: int) -> PackedRow:
        """Write the inputs of a row depth-first, and list what is predicted."""
        size, begin, stop = self.lengths[index], *self._bounds[index : index + 2]
        tokens, depth, end = np.empty(size, np.int64), np.empty(size, np.int64), np.full(size, size)
        path, at = np.empty(0, np.int64), 0
        query, target, owner = [], [], []
        for key, shared in zip(self._keys[begin:stop], self._shared[begin:stop], strict=True):
            read = np.frombuffer(key, _TOKEN)
            shared = min(shared, len(path))  # 0 where the row begins
            after = at + len(read) - shared
            end[path[shared:]] = at
            tokens[at:after] = read[shared:]
            depth[at:after] = np.arange(shared, len(read))
            path, at = np.concatenate([path[:shared], np.arange(at, after)]), after
            for sequence in self._owners[key]:
                target.append(np.frombuffer(self._targets[sequence], _TOKEN))
                query.append(path[len(path) - len(target[-1]) :])
                owner.append(np.full(len(target[-1]), sequence))
        joined = (np.concatenate(part).astype(np.int64) for part in (query, target, owner))
        return PackedRow(tokens, depth, end, *joined)


def key_of(tokens: Iterable[int] | NDArray[Any]) -> bytes:
    """Return bytes that sort like the tokens, four for each: keys of parts can be joined."""
    whole = tokens if isinstance(tokens, np.ndarray) else np.fromiter(tokens, _TOKEN)
    return whole.astype(_TOKEN, copy=False).tobytes()


def common(left: bytes, right: bytes) -> int:
    """Return the number of leading tokens that two keys have in common."""
    size = min(len(left), len(right))
    differing = int.from_bytes(left[:size]) ^ int.from_bytes(right[:size])
    return (8 * size - differing.bit_length()) // (8 * _TOKEN.itemsize)


def group_rows(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Return indices of rows that run together, the longest first: at most `tokens` when padded.

    So memory runs out at once or never. A longer row runs alone, and rows whose padding would cost more
    than a forward pass run in a later one.
    """
    groups: list[list[int]] = []
    padding = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[groups[-1][0]] if groups else 0
        padding += longest - lengths[index]
        is_full = not groups or longest * (len(groups[-1]) + 1) > tokens
        if is_full or padding > PASS_TOKENS:
            groups.append([])
            padding = 0
        groups[-1].append(index)
    return groups


PASS_TOKENS = 32
"""Cost of one more forward pass, in tokens; up to as much padding is accepted to avoid it."""


class Batch(NamedTuple):
    """The input of one forward pass: distinct queries in it, ascending, and pairs, sorted by query."""

    rows: Sequence[PackedRow]
    tokens: torch.Tensor  # (B, S)
    depth: torch.Tensor  # (B, S)
    end: torch.Tensor  # (B, S)
    query: torch.Tensor  # (Q,) indices into the flattened (B * S) hidden states
    pair: torch.Tensor  # (P,) indices into `query`
    target: torch.Tensor  # (P,)
    owner: Ints  # (P,)
    position: Ints  # (P,) of each target in its sequence
    is_causal: bool
    """Whether every row is one plain sequence."""


def collate(
    rows: Sequence[PackedRow], length: int, *, count: int = 0, is_causal: bool | None = None
) -> Batch:
    """Pad rows to one length, and to `count` rows; padding attends only to itself, and nothing else to it.

    `is_causal`: whether no mask is needed; None: if every row is one plain sequence.
    """
    is_causal = all(row.is_chain for row in rows) if is_causal is None else is_causal
    shape = max(count, len(rows)), length
    index = np.broadcast_to(np.arange(length), shape)
    longest = max(len(row.tokens) for row in rows)  # padding has no higher position
    tokens, end = np.zeros(shape, np.int64), index + 1
    depth = np.minimum(index, longest - 1) if is_causal else np.zeros(shape, np.int64)
    for i, row in enumerate(rows):
        for padded, values in ((tokens, row.tokens), (depth, row.depth), (end, row.end)):
            padded[i, : len(values)] = values
    query = np.concatenate([i * length + row.query for i, row in enumerate(rows)])
    order = np.argsort(query, kind="stable")
    target, owner = (
        np.concatenate(part)[order] for part in zip(*(row[4:] for row in rows), strict=True)
    )
    query, pair = np.unique(query[order], return_inverse=True)
    return Batch(
        rows=rows,
        tokens=torch.from_numpy(tokens),
        depth=torch.from_numpy(depth),
        end=torch.from_numpy(end),
        query=torch.from_numpy(query),
        pair=torch.from_numpy(pair),
        target=torch.from_numpy(target),
        owner=owner,
        position=depth.ravel()[query][pair] + 1,
        is_causal=is_causal,
    )
