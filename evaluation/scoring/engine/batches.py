"""Make batches of rows: the input tensors of one forward pass, and the pairs that it scores.

On CPU, rows of similar length run together, padded to the longest. On a GPU they are padded to a few
shapes, since each shape is compiled once:

    tries    1 row of a quarter of the row budget, of all of it, or of a power of two times as much
    text     as many blocks as the row budget holds, each padded to whole blocks of attention

So a job compiles two shapes for its tasks and one for each length of its text. The last row of a task
and the last pass of a text are padded.

Letters: B rows, S tokens of a row, Q queries, P pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch

from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.packed_rows import PackedRow
from evaluation.scoring.engine.tries import Ints


@dataclass(frozen=True)
class Batch:
    """One forward pass.

    `queries` are distinct and ascending indices into the flattened (B * S) hidden states. Pairs are
    sorted by `pair_query`, an index into `queries`; `order[p]` is the index of the p-th pair before
    sorting. In that unsorted order the first `counts[0]` pairs belong to `owners[0]`, and so on.
    `is_causal`: every row is one plain sequence.
    """

    tokens: torch.Tensor  # (B, S)
    depth: torch.Tensor  # (B, S)
    end: torch.Tensor  # (B, S)
    queries: torch.Tensor  # (Q,)
    pair_query: torch.Tensor  # (P,)
    pair_token: torch.Tensor  # (P,)
    order: Ints  # (P,)
    owners: Ints
    counts: Ints
    is_causal: bool
    real_tokens: int
    highest: int  # highest token id that is read or scored
    deepest: int  # highest position

    @property
    def positions(self) -> Ints:
        """Position of each pair's token in its sequence, in the order of `owners`."""
        positions = np.empty_like(self.order)
        positions[self.order] = self.depth.flatten()[self.queries[self.pair_query]].numpy() + 1
        return positions

    @property
    def pinned(self) -> "Batch":
        """The same batch in pinned memory, from which a GPU copies asynchronously."""
        names = ("tokens", "depth", "end", "queries", "pair_query", "pair_token")
        return replace(self, **{name: getattr(self, name).pin_memory() for name in names})


def collate(
    rows: Sequence[PackedRow], length: int, *, count: int = 0, is_trie: bool = False
) -> Batch:
    """Pad rows to one length; a padding token attends only to itself, and no other token to it.

    Args:
        length: Tokens of each row of the batch, S.
        count: Least number of rows of the batch; missing ones are padding.
        is_trie: Whether to use a mask even if each row happens to be one plain sequence.
    """
    is_causal = not is_trie and all(row.is_chain for row in rows)
    count = max(count, len(rows))
    index = np.arange(length)
    tokens = np.zeros((count, length), dtype=np.int64)
    longest = max(map(len, rows))  # padding has no higher position than the longest row
    depth = np.zeros_like(tokens)
    if is_causal:
        depth[:] = np.minimum(index, longest - 1)
    end = np.tile(index + 1, (count, 1))
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row.tokens
        depth[i, : len(row)] = row.depth
        end[i, : len(row)] = row.end
    queries = np.concatenate([i * length + row.pair_query for i, row in enumerate(rows)])
    targets = np.concatenate([row.pair_token for row in rows])
    order = np.argsort(queries, kind="stable")
    queries = queries[order]
    is_new = np.append(True, queries[1:] != queries[:-1])
    return Batch(
        tokens=torch.from_numpy(tokens),
        depth=torch.from_numpy(depth),
        end=torch.from_numpy(end),
        queries=torch.from_numpy(queries[is_new]),
        pair_query=torch.from_numpy(np.cumsum(is_new) - 1),
        pair_token=torch.from_numpy(targets[order]),
        order=order,
        owners=np.concatenate([row.owners for row in rows]),
        counts=np.concatenate([row.counts for row in rows]),
        is_causal=is_causal,
        real_tokens=sum(len(row) for row in rows),
        highest=max(int(tokens.max()), int(targets.max())),
        deepest=int(depth.max()),
    )


PASS_TOKENS = 32
"""Cost of one more forward pass, in tokens; up to as much padding is accepted to avoid it."""


def group_rows(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield indices of rows that run together, the longest first: at most `tokens` when padded.

    The longest come first, so that memory runs out at once or never. A row that is longer than
    `tokens` runs alone; rows whose padding would cost more than a forward pass run in a later one.
    """
    group: list[int] = []
    padding = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[group[0] if group else index]
        padding += longest - lengths[index]
        if group and (longest * (len(group) + 1) > tokens or padding > PASS_TOKENS):
            yield group
            group, padding = [], 0
        group.append(index)
    if group:
        yield group


class Shape(NamedTuple):
    """Rows of a forward pass, and tokens of each."""

    rows: int
    length: int


def _padded(tokens: int) -> int:
    """Round tokens up to whole blocks of attention."""
    return -(-tokens // BLOCK) * BLOCK


def shape_of(length: int, row_tokens: int, *, is_text: bool) -> Shape:
    """Return the shape to which a row is padded if layers are compiled."""
    if is_text:
        block = _padded(length)
        return Shape(max(1, row_tokens // block), block)
    full = _padded(row_tokens)
    quarter = _padded(full // 4)
    if length <= quarter:
        return Shape(1, quarter)
    while full < length:
        full *= 2
    return Shape(1, full)


def group_by_shape(
    lengths: Sequence[int], row_tokens: int, *, is_text: bool
) -> Iterator[list[int]]:
    """Yield rows that run together if layers are compiled, the longest first."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    shapes = groupby(order, lambda i: shape_of(lengths[i], row_tokens, is_text=is_text))
    for shape, group in shapes:
        members = list(group)
        yield from (members[at : at + shape.rows] for at in range(0, len(members), shape.rows))
