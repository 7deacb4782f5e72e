"""How much the items of two checkpoints differ: what a number of questions is computed from."""

import math
from typing import NamedTuple

import numpy as np

from evaluation.bridge.text_blocks import ratio_influence, serial_spread
from evaluation.metrics.spread import Floats, grouped_spread
from evaluation.results.kinds import Blocks, Companions, CreditItem, Credits, Item, NatsItem


class PairedItems(NamedTuple):
    """`variance` of one unit's paired difference, and the share of units that turn, for credits.

    Clusters, strata and neighbouring blocks count: it is n times the variance of the mean.
    """

    n: int
    variance: float
    turning: float | None = None


def paired_items(mine: Item, other: Item, metric: str) -> PairedItems | None:
    """None where the units are not known, or are not the same on both sides."""
    if isinstance(mine, NatsItem) and isinstance(other, NatsItem):
        return _blocks(mine.blocks, other.blocks, metric)
    if not isinstance(mine, CreditItem) or not isinstance(other, CreditItem):
        return None
    if metric in mine.credits and metric in other.credits:
        return _credits(mine.credits[metric], other.credits[metric])
    return _companions(mine.companions, other.companions, metric)


def standard_error(item: Item, metric: str) -> float | None:
    """Of the mean credit of a checkpoint's own items."""
    units = item.credits.get(metric) if isinstance(item, CreditItem) else None
    if units is None or len(units.ids) < 2:
        return None
    influence = (units.credit - units.credit.mean()) / len(units.ids)
    return math.sqrt(grouped_spread(influence, units.clusters, units.strata).variance)


def _blocks(mine: Blocks | None, other: Blocks | None, metric: str) -> PairedItems | None:
    if mine is None or other is None or not np.array_equal(mine.ids, other.ids):
        return None
    weights: Floats = mine.bytes * math.log(2) if metric == "bits_per_byte" else mine.tokens
    if len(mine.ids) < 2 or not weights.sum():
        return None
    spread = serial_spread(ratio_influence(mine.nats - other.nats, weights))
    return PairedItems(len(mine.ids), spread.variance * len(mine.ids))


def _credits(mine: Credits, other: Credits) -> PairedItems | None:
    mine, other = mine.without(other), other.without(mine)
    if mine.ids != other.ids or len(mine.ids) < 2:
        return None
    difference = mine.credit - other.credit
    known = _of_mean(difference, mine)
    return known._replace(turning=np.count_nonzero(difference) / len(difference))


def _companions(
    mine: Companions | None, other: Companions | None, metric: str
) -> PairedItems | None:
    if mine is None or other is None or mine.ids != other.ids or len(mine.ids) < 2:
        return None
    return _of_mean(mine.values[metric] - other.values[metric], mine)


def _of_mean(difference: Floats, units: Credits | Companions) -> PairedItems:
    n = len(difference)
    influence = (difference - difference.mean()) / n
    return PairedItems(n, grouped_spread(influence, units.clusters, units.strata).variance * n)
