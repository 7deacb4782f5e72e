"""Scores of one checkpoint in long form, each with its own 95 % interval over items.

These intervals are wide, as they include the differences between items. Two checkpoints are tested by
their paired delta instead.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluation.bridge.breakdowns import position_values
from evaluation.bridge.delta import OVERALL
from evaluation.bridge.estimate import Estimate, mean, unknown
from evaluation.bridge.means import weights_of_means
from evaluation.bridge.paired import level_of
from evaluation.metrics.variance import wilson
from evaluation.results.read import Item, Results, TierResults
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import Tier, TierName

NO_ITEMS = "no per-item scores"

ALL_ALIKE = "no interval: every item has the same score, so that the variance is not known"


@dataclass(frozen=True)
class Value:
    """One metric of one item; `n` counts blocks, questions or prompts.

    A `primary` one is in the family of tests: each item's headline, and the rates of all units.
    """

    tier: TierName
    item: str
    group: str | None
    metric: str
    value: float
    low: float | None
    high: float | None
    n: int
    chance: float | None = None
    note: str | None = None
    position: int | None = None
    primary: bool = False


def values_of(results: Results) -> list[Value]:
    """Return all metrics of all items of a checkpoint, tier by tier, overall ones last."""
    return [value for tier in results.tiers.values() for value in _tier_values(tier)]


def position_values_of(results: Results) -> list[Value]:
    """Return the loss of each item at the positions of each bin, where units have it."""
    return [
        _value(tier.tier, name, item.group, tier.tier.headline, at.estimate, position=at.first)
        for tier in results.tiers.values()
        for name, item in tier.items.items()
        for at in position_values(item.units, tier.file.sequence_length)
    ]


def _value(
    tier: Tier, item: str, group: str | None, metric: str, estimate: Estimate, **more: Any
) -> Value:
    """Return a value, with a note on the reason where it has no bounds."""
    note = None if estimate.low is not None else estimate.note or "too few items"
    numbers = estimate.value, estimate.low, estimate.high, estimate.n
    return Value(tier.name, item, group, metric, *numbers, note=note, **more)


def _tier_values(results: TierResults) -> Iterator[Value]:
    """Yield the values of a tier's items, and their means, or of a tier of rates those of all units."""
    tier, by_metric = results.tier, dict[str, dict[str, Estimate]]()
    overall = {} if results.overall is None else {OVERALL: results.overall}
    for name, item in {**overall, **results.items}.items():
        for metric in _metrics(tier, item):
            level, stored = _alone(item, metric), item.values.get(metric.name)
            if tier.rates and level.n == 1:  # of one prompt the interval is wide, but known
                low, high = wilson(level.value, level.n)
                level = replace(level, low=low, high=high)
            by_metric.setdefault(metric.name, {})[name] = level
            shown, chance = (
                _linked(metric, level),
                None if metric.is_secondary else item.entry.chance,
            )
            shown = shown if stored is None else replace(shown, value=stored)
            head = name == OVERALL if tier.rates else metric.name == tier.headline_of(item.values)
            about = {"chance": chance, "primary": head}
            yield _value(tier, name, item.group, metric.name, shown, **about)
    if not tier.rates:
        yield from _means(results, by_metric)


def _metrics(tier: Tier, item: Item) -> Sequence[Metric]:
    """Return the metrics that an item's units measure, the secondary ones last, or else what was stored."""
    if tier.kind == "nats":
        return [metric for metric in tier.metrics if metric.name in item.values]
    measured = [tier.metric(name) for name in item.measured or item.values]
    return sorted(measured, key=lambda metric: metric.is_secondary)


def _alone(item: Item, metric: Metric) -> Estimate:
    """Return the mean of an item's units, or the ratio behind a metric, or without units what was stored."""
    ratio = item.measured.get(metric.name)
    if item.units is None or ratio is None or not ratio.is_judged.any():
        value = metric.unlinked(item.values[metric.name])
        return unknown(value, n=0, units=0, note=NO_ITEMS)
    is_share = ratio.weights is None and _is_share(metric)
    level = level_of(ratio, item.units.layout.groups, is_share=is_share)
    is_alike = level.low is None and level.n > 1 and np.ptp(ratio.amounts[ratio.is_judged]) == 0
    return replace(level, note=ALL_ALIKE) if is_alike else level


def _linked(metric: Metric, ratio: Estimate) -> Estimate:
    """Return the estimate of a metric that is a ratio, or follows from it."""
    if metric.link == "identity":
        return ratio
    value, low, high = (metric.linked(x) for x in (ratio.value, ratio.low, ratio.high))
    return replace(ratio, value=math.inf if value is None else value, low=low, high=high)


def _means(
    results: TierResults, by_metric: Mapping[str, Mapping[str, Estimate]]
) -> Iterator[Value]:
    """Yield the means of each metric over the items of its kind, and over groups, if all have it."""
    tier, items = results.tier, results.items
    for metric in map(tier.metric, by_metric):
        levels, groups = by_metric[metric.name], results.file.groups
        for whole, weights, offset in weights_of_means(results, metric, levels, groups):
            level = _linked(metric, mean({name: levels[name] for name in weights}, weights))
            chances = [(items[name].entry.chance, weight) for name, weight in weights.items()]
            known = [chance * weight for chance, weight in chances if chance is not None]
            chance = math.fsum(known) if len(known) == len(weights) else None
            if offset:
                level, chance = _centered(level, offset), 0.0
            elif _is_share(metric):
                level = _within_0_and_1(level)
            chance = None if metric.is_secondary else chance
            yield _value(tier, whole, None, metric.name, level, chance=chance)


def _is_share(metric: Metric) -> bool:
    return metric.bounds == (0.0, 1.0)


def _within_0_and_1(whole: Estimate) -> Estimate:
    if whole.low is None or whole.high is None:
        return whole
    return replace(whole, low=max(0.0, whole.low), high=min(1.0, whole.high))


def _centered(whole: Estimate, offset: float) -> Estimate:
    """Return the level of a centered group, 0 at chance, from its weighted sum of accuracies."""
    low, high = (None if x is None else x - offset for x in (whole.low, whole.high))
    high = None if high is None else min(1.0, high)
    return replace(whole, value=whole.value - offset, low=low, high=high)
