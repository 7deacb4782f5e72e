"""Pack sequences into rows of a forward pass, so that a prefix which several share is read once.

The token at row index `q` attends to that at `kv` if `kv <= q and q < end[kv]`. Its position is its
depth: the number of tokens before it in its sequence.

    A B C, A B D, A E      tokens  A B C D E
                           depth   0 1 2 2 1
                           end     5 4 3 4 5

Letters: B rows, S tokens of a row, P pairs of a query (an index of a token) and a token whose
log-probability after it is wanted.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Capacity = Callable[[Ints], Ints]
"""Function from lengths of shared prefixes to the most tokens of a row whose sequences share these."""

PASS_TOKENS = 32
"""Cost of one more forward pass, in tokens; up to as much padding is accepted to avoid it."""

_TOKEN = np.dtype(">u4")
"""Big-endian, so that bytes sort like the tokens."""


def key_of(tokens: Iterable[int] | NDArray[Any]) -> bytes:
    """Return bytes that sort like the tokens, four for each: keys of parts can be joined."""
    whole = tokens if isinstance(tokens, np.ndarray) else np.fromiter(tokens, _TOKEN)
    return whole.astype(_TOKEN, copy=False).tobytes()


def common(left: bytes, right: bytes) -> int:
    """Return the number of leading tokens that two keys have in common."""
    size = min(len(left), len(right))
    differing = int.from_bytes(left[:size]) ^ int.from_bytes(right[:size])
    return (8 * size - differing.bit_length()) // (8 * _TOKEN.itemsize)


class Batch(NamedTuple):
    """The input of one forward pass; padding attends only to itself, and nothing else to it."""

    tokens: Ints  # (B, S)
    depth: Ints  # (B, S)
    end: Ints  # (B, S)
    query: Ints  # (P,) indices into the flattened tokens, ascending
    target: Ints  # (P,)
    owner: Ints  # (P,) indices of sequences
    is_causal: bool
    """Whether every row is one plain sequence."""

    @property
    def position(self) -> Ints:
        """Return the position of each target (P,) in its sequence."""
        position: Ints = self.depth.ravel()[self.query] + 1
        return position

    def path(self, query: int) -> tuple[int, Ints]:
        """Return the row of a query, and the indices in it of the sequence that ends with the query."""
        row, last = divmod(query, self.tokens.shape[1])
        return row, np.flatnonzero(self.end[row, : last + 1] > last)


class PackedRows:
    """Sequences, sorted by their inputs, and cut into runs of neighbours that share a row each.

    Each sequence is a key of its input, and one of the targets that are predicted after its last tokens. A
    row begins where it would get longer than `capacity` allows for the prefix that would have to be read
    again; a longer input has its own row.
    """

    def __init__(self, sequences: Sequence[tuple[bytes, bytes]], capacity: Capacity) -> None:
        self._sequences = sequences
        order = sorted(range(len(sequences)), key=sequences.__getitem__)
        inputs = [sequences[owner][0] for owner in order]
        prefixes = [common(*pair) for pair in pairwise([b"", *inputs])]
        most = capacity(np.array(prefixes, np.int64)).tolist()
        self.lengths: list[int] = []
        """Tokens of each row."""
        self._members: list[list[tuple[int, int]]] = []
        """Each row's sequences, and how many tokens each shares with the one before it in the row."""
        for owner, key, shared, limit in zip(order, inputs, prefixes, most, strict=True):
            length = len(key) // _TOKEN.itemsize
            if self.lengths and self.lengths[-1] + length - shared <= limit:
                self.lengths[-1] += length - shared
                self._members[-1].append((owner, shared))
            else:
                self.lengths.append(length)
                self._members.append([(owner, 0)])

    def batch(self, indices: Sequence[int], length: int = 0) -> Batch:
        """Write some rows depth-first, padded to `length` tokens, or the longest."""
        shape = len(indices), max(length, *(self.lengths[index] for index in indices))
        tokens, depth = np.zeros((2, *shape), np.int64)
        end = np.broadcast_to(np.arange(1, shape[1] + 1), shape).copy()
        pairs: list[tuple[NDArray[Any], ...]] = []
        is_causal = True
        for row, index in enumerate(indices):
            path, at, size = np.empty(0, np.int64), 0, self.lengths[index]
            end[row, :size] = size
            for owner, shared in self._members[index]:
                read, target = (np.frombuffer(key, _TOKEN) for key in self._sequences[owner])
                new = np.arange(at, at + len(read) - shared)
                end[row, path[shared:]] = at
                tokens[row, new], depth[row, new] = read[shared:], np.arange(shared, len(read))
                path, at = np.concatenate([path[:shared], new]), at + len(new)
                queries = row * shape[1] + path[len(path) - len(target) :]
                pairs.append((queries, target, np.full(len(target), owner)))
            is_causal &= len(path) == size
        joined = [np.concatenate(part).astype(np.int64) for part in zip(*pairs, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        asked, wanted, owners = (part[order] for part in joined)
        return Batch(tokens, depth, end, asked, wanted, owners, is_causal)


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
        if not groups or longest * (len(groups[-1]) + 1) > tokens or padding > PASS_TOKENS:
            groups.append([])
            padding = 0
        groups[-1].append(index)
    return groups
