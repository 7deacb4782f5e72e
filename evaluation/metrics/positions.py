"""Nats per token by position: does a model use distant context?

A token's position is the number of tokens before it that the model may see: of its block, or of its
document where documents are kept apart. Bins double, so that each compares a context with half of it:

    0-255   256-511   512-1023   1024-2047 …

The first token of a block or document follows nothing and is not scored.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evaluation.metrics.variance import Floats

FIRST = 256
"""Positions of the first bin."""

NATS, TOKENS = "nats_by_position", "tokens_by_position"
"""Columns of a table of blocks, each a list of one number per bin."""


class Positions(NamedTuple):
    """Nats and scored tokens of blocks by position; (blocks, bins) each."""

    nats: Floats
    tokens: Floats


class Bin(NamedTuple):
    """First and last position of a bin, with nats and tokens of the n blocks that have tokens there, (n,)."""

    first: int
    last: int
    nats: Floats
    tokens: Floats


def bin_starts(length: int) -> list[int]:
    """Return the first position of each bin, for sequences of so many tokens."""
    doublings = ((length - 1) // FIRST).bit_length()
    return [0, *(FIRST << power for power in range(doublings))]


def positions_of(table: pa.Table) -> Positions | None:
    """Return the columns by position of a table of blocks; None where it was stored without them."""
    if any(name not in table.column_names or table[name].null_count for name in (NATS, TOKENS)):
        return None
    nats, tokens = (np.array(table[name].to_pylist(), dtype=np.float64) for name in (NATS, TOKENS))
    return Positions(nats, tokens)


def bins_of(positions: Positions, length: int) -> list[Bin]:
    """Return the bins that have tokens; none where only one has, as there is nothing to compare."""
    edges = [*bin_starts(length), length]
    bins = []
    for number, (first, end) in enumerate(pairwise(edges)):
        has_tokens = positions.tokens[:, number] > 0
        nats, tokens = (amounts[has_tokens, number] for amounts in positions)
        if has_tokens.any():
            bins.append(Bin(first, end - 1, nats, tokens))
    return bins if len(bins) > 1 else []
