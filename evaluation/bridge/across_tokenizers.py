"""Deltas of two checkpoints whose tokenizers differ: what no token is counted in.

Nats per token and perplexities of two vocabularies are of different units. What is left are bits per
byte, and the credit of questions and answers, which are the same questions in any tokens.

The blocks of a slice hold other stretches of its text in each tokenizer, so they cannot be paired: the
two bits per byte are those of two samples of one text, and the variance of their difference is the sum
of both. Both samples largely overlap, so that the interval is too wide rather than too narrow.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evaluation.bridge.delta import NO_TABLE, Delta, Pair, delta_of, macro
from evaluation.bridge.deltas import corrected, tier_deltas
from evaluation.bridge.nats import paired_ratio
from evaluation.bridge.pairing import AGAIN, check_comparable
from evaluation.bridge.statistics import Estimate, from_standard_error, unknown
from evaluation.errors import BridgeError
from evaluation.metrics.spread import Floats, Spread
from evaluation.results.kinds import Blocks, NatsItem
from evaluation.results.read import Results

PER_BYTE = "bits_per_byte"

FREE_OF_TOKENS = ("fraction", "bits per byte")
"""Units of what is compared."""


def compare_across(ours: Results, theirs: Results) -> list[Delta]:
    """All deltas that no tokenizer has a part in; raises BridgeError like `deltas.compare`.

    Bits per byte take the place of nats per token in the family of tests.
    """
    check_comparable(ours, theirs, across_tokenizers=True)
    pairs = [Pair(mine, theirs.tiers[name]) for name, mine in ours.tiers.items()]
    return corrected([delta for pair in pairs for delta in _of_tier(pair)])


def is_free_of_tokens(pair: Pair, delta: Delta) -> bool:
    unit = pair.tier.metric(delta.metric.removeprefix("delta_")).unit
    return unit in FREE_OF_TOKENS


def _of_tier(pair: Pair) -> list[Delta]:
    if pair.tier.kind == "nats":
        rows = list(_bits(pair))
        return [*rows, macro(rows)]
    return [delta for delta in tier_deltas(pair) if is_free_of_tokens(pair, delta)]


def _bits(pair: Pair) -> Iterator[Delta]:
    for name, mine in pair.ours.items.items():
        other = pair.theirs.items[name]
        values = [
            side.values[PER_BYTE]
            for side in (mine, other)
            if isinstance(side, NatsItem) and PER_BYTE in side.values
        ]
        if len(values) < 2 or not isinstance(mine, NatsItem) or not isinstance(other, NatsItem):
            raise BridgeError(
                f"{pair.tier.item} {name!r}: {pair.ours.folder} and {pair.theirs.folder} have other "
                f"tokenizers, and not both have its bits per byte; {AGAIN}"
            )
        known = _unpaired(mine.blocks, other.blocks, values[0] - values[1])
        both = values[0], values[1]
        yield replace(delta_of(pair.tier, name, mine.group, PER_BYTE, both, known), primary=True)


def _unpaired(ours: Blocks | None, theirs: Blocks | None, value: float) -> Estimate:
    if ours is None or theirs is None:
        return unknown(value, n=0, units=0, note=NO_TABLE)
    return difference_of_two(_bits_per_byte(ours), _bits_per_byte(theirs))


def _bits_per_byte(blocks: Blocks) -> Estimate:
    return paired_ratio(blocks.nats, np.zeros_like(blocks.nats), blocks.bytes * math.log(2))


def difference_of_two(ours: Estimate, theirs: Estimate) -> Estimate:
    """The difference of two estimates from separate samples; degrees of freedom by Welch."""
    value = ours.value - theirs.value
    counts = {"n": ours.n + theirs.n, "units": ours.units + theirs.units}
    a, b = ours.spread, theirs.spread
    if a is None or b is None:
        note = ours.note if a is None else theirs.note
        return unknown(value, note=note or "no interval: one side has none", **counts)
    variance = a.variance + b.variance
    df = variance**2 / (a.variance**2 / a.df + b.variance**2 / b.df)
    third = ours.skew * a.variance**1.5 - theirs.skew * b.variance**1.5
    dependent = _joined(*(_units(side) for side in (a, b)))
    spread = Spread(_joined(a.independent, b.independent), dependent, counts["units"], df)
    return from_standard_error(
        value,
        math.sqrt(variance),
        df,
        method="two samples, t (Welch)",
        skew=third / variance**1.5,
        spread=spread,
        **counts,
    )


def _units(spread: Spread) -> Floats:
    """What the variance is of, scaled where that of independent items is larger."""
    units = spread.independent if spread.dependent is None else spread.dependent
    return units * math.sqrt(spread.variance / float(units @ units))


def _joined(ours: Floats, theirs: Floats) -> Floats:
    return np.concatenate([ours, -theirs])
