"""Loss by position: of one checkpoint with intervals, and paired with the bridge's.

It shows how far back a checkpoint uses what it reads. It is descriptive: none of these numbers is tested,
and no verdict or correction rests on them.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from evaluation.bridge.delta import change_columns
from evaluation.bridge.pairing import AGAIN, Pair, tier_pairs
from evaluation.bridge.statistics import Estimate
from evaluation.bridge.text_blocks import paired_ratio
from evaluation.errors import BridgeError
from evaluation.metrics.positions import Positions, bins_of
from evaluation.results.kinds import Blocks, NatsItem
from evaluation.results.read import Results


class BinValue(NamedTuple):
    """Nats per token at the positions of a bin."""

    first: int
    last: int
    estimate: Estimate


def position_values(blocks: Blocks | None, length: int) -> list[BinValue]:
    """Return the loss in each bin of blocks of so many tokens; nothing where there is one bin."""
    if blocks is None or blocks.positions is None:
        return []
    return [
        BinValue(one.first, one.last, paired_ratio(one.nats, np.zeros_like(one.nats), one.tokens))
        for one in bins_of(blocks.positions, length)
    ]


def position_deltas(ours: Results, theirs: Results) -> Iterator[dict[str, Any]]:
    """Yield rows of `deltas_file.PositionDelta`, for two sides that may be compared.

    Raises:
        BridgeError: blocks have other tokens at some positions.
    """
    for pair in tier_pairs(ours, theirs):
        for name, mine, other in pair.both(NatsItem):
            if mine.blocks is None or other.blocks is None:
                continue
            left, right = mine.blocks.positions, other.blocks.positions
            if left is not None and right is not None:
                yield from _rows(pair, name, left, right)


def _rows(pair: Pair, name: str, left: Positions, right: Positions) -> Iterator[dict[str, Any]]:
    if not np.array_equal(left.tokens, right.tokens):
        raise BridgeError(
            f"{pair.tier.unit} of {name!r}: {pair.ours.folder} and {pair.theirs.folder} scored "
            f"different numbers of tokens at the same positions; {AGAIN}"
        )
    length = pair.ours.file.sequence_length
    for one, other in zip(bins_of(left, length), bins_of(right, length), strict=True):
        known, tokens = paired_ratio(one.nats, other.nats, one.tokens), one.tokens.sum()
        values = float(one.nats.sum() / tokens), float(other.nats.sum() / tokens)
        yield {
            "tier": pair.tier.name,
            "item": name,
            "first": one.first,
            "last": one.last,
            "tokens": int(tokens),
            **change_columns(values, known),
            "n": known.n,
            "note": known.note,
        }
