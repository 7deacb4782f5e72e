"""Scores of one checkpoint in long form, each with its own 95 % interval over items.

These intervals are wide, as they include the differences between items. Two checkpoints are tested by
their paired delta instead.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, kw_only=True)
class Value:
    """One metric of one item; `n` counts blocks, questions or prompts."""

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


def values_of(results: Results) -> list[Value]:
    """Return all metrics of all items of a checkpoint, tier by tier, overall ones last."""
    return [value for tier in results.tiers.values() for value in _tier_values(tier)]


def position_values_of(results: Results) -> list[Value]:
    """Return the loss of each item at the positions of each bin, where units have it."""
    return [
        _value(tier.tier, name, item.group, tier.tier.headline, at.estimate, None, at.first)
        for tier in results.tiers.values()
        for name, item in tier.items.items()
        for at in position_values(item.units, tier.file.sequence_length)
    ]


ValueRow = tuple[str, str | None, str, Estimate, float | None]
"""Item, group, metric, estimate and chance."""


def _tier_values(tier_results: TierResults) -> list[Value]:
    """Return all metrics of all items of one tier."""
    tier = tier_results.tier
    rows_of = _ratios if tier.kind == "nats" else _rates if tier.rates else _credits
    return [_value(tier, *row) for row in rows_of(tier_results)]


def _value(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    estimate: Estimate,
    chance: float | None,
    position: int | None = None,
) -> Value:
    """Return a value, with a note on the reason where it has no bounds."""
    return Value(
        tier=tier.name,
        item=item,
        group=group,
        metric=metric,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        chance=chance,
        note=None if estimate.low is not None else estimate.note or "too few items",
        position=position,
    )


def _ratios(tier_results: TierResults) -> Iterator[ValueRow]:
    """Yield the metrics of all slices and their means; that of an exponential is one of the mean."""
    estimates: dict[str, dict[str, Estimate]] = {}
    items = tier_results.items
    for name, item in items.items():
        for metric in tier_results.tier.metrics:
            if (stored := item.values.get(metric.name)) is None:
                continue
            ratio = _alone(item, metric) or _no_items(metric.unlinked(stored))
            estimates.setdefault(metric.name, {})[name] = ratio
            yield name, item.group, metric.name, replace(_linked(metric, ratio), value=stored), None
    wholes = weights_of_means(items, len(items), tier_results.file.groups, {}, is_accuracy=False)
    for whole, weights, _ in wholes:
        for metric in tier_results.tier.metrics:
            estimate = estimates.get(metric.name, {})
            if weights.keys() <= estimate.keys():
                yield whole, None, metric.name, _linked(metric, _mean(estimate, weights)), None


def _linked(metric: Metric, ratio: Estimate) -> Estimate:
    """Return the estimate of a metric that is a ratio, or follows from it."""
    if metric.link == "identity":
        return ratio
    value, low, high = (metric.linked(x) for x in (ratio.value, ratio.low, ratio.high))
    value = math.inf if value is None else value
    return replace(ratio, value=value, low=low, high=high, se=ratio.se and value * ratio.se)


def _mean(estimates: Mapping[str, Estimate], weights: Mapping[str, float]) -> Estimate:
    return mean({name: estimates[name] for name in weights}, weights)


def _within_0_and_1(whole: Estimate) -> Estimate:
    if whole.low is None or whole.high is None:
        return whole
    return replace(whole, low=max(0.0, whole.low), high=min(1.0, whole.high))


def _centered(whole: Estimate, offset: float) -> Estimate:
    """Return the level of a centered group, 0 at chance, from its weighted sum of accuracies."""
    low, high = (None if x is None else x - offset for x in (whole.low, whole.high))
    high = None if high is None else min(1.0, high)
    return replace(whole, value=whole.value - offset, low=low, high=high)


def _no_items(value: float) -> Estimate:
    return unknown(value, n=0, units=0, note=NO_ITEMS)


def _alone(item: Item, metric: Metric) -> Estimate | None:
    """Return the mean of an item's units, or the ratio behind a metric; None without units."""
    ratio = None if item.units is None else item.measured.get(metric.name)
    if item.units is None or ratio is None or not ratio.is_judged.any():
        return None
    is_share = ratio.weights is None and _is_share(metric)
    level = level_of(ratio, item.units.layout.groups, is_share=is_share)
    is_alike = level.low is None and level.n > 1 and np.ptp(ratio.amounts[ratio.is_judged]) == 0
    return replace(level, note=ALL_ALIKE) if is_alike else level


def _credits(tier_results: TierResults) -> Iterator[ValueRow]:
    """Yield the credits of all items and their means, then each secondary metric likewise."""
    by_metric: dict[str, dict[str, Estimate]] = {}
    items, metric_of = tier_results.items, tier_results.tier.metric
    for name, item in items.items():
        names = [one for one in item.measured if not metric_of(one).is_secondary] or item.values
        for metric in names:
            estimate = _alone(item, metric_of(metric)) or _no_items(item.values[metric])
            by_metric.setdefault(metric, {})[name] = estimate
            yield name, item.group, metric, estimate, item.entry.chance
    yield from _means(tier_results, by_metric, is_credit=True)
    for secondary in tier_results.tier.secondary:
        alone = {name: _alone(item, secondary) for name, item in items.items()}
        estimates = {name: estimate for name, estimate in alone.items() if estimate is not None}
        for name, estimate in estimates.items():
            yield name, items[name].group, secondary.name, estimate, None
        if estimates:
            yield from _means(tier_results, {secondary.name: estimates}, is_credit=False)


def _means(
    tier_results: TierResults, by_metric: Mapping[str, Mapping[str, Estimate]], *, is_credit: bool
) -> Iterator[ValueRow]:
    """Yield the means of each headline and secondary metric over the items of its kind, if all have it."""
    items = tier_results.items
    tier, file = tier_results.tier, tier_results.file
    kinds = [tier.metrics_of(item.values) for item in items.values()]
    for name, estimates in by_metric.items():
        count, metric = sum(name in kind for kind in kinds), tier.metric(name)
        groups, is_accuracy = file.groups if count else {}, tier.is_accuracy(metric)
        for whole, weights, offset in weights_of_means(
            estimates, count, groups, file.offsets, is_accuracy=is_accuracy
        ):
            level = _mean(estimates, weights)
            chances = [items[item].entry.chance for item in level.weights]
            pairs = zip(chances, level.weights.values(), strict=True)
            drawn = [weight * chance for chance, weight in pairs if chance is not None]
            chance = math.fsum(drawn) if is_credit and None not in chances else None
            if offset:
                level, chance = _centered(level, offset), 0.0
            elif _is_share(metric):
                level = _within_0_and_1(level)
            yield whole, None, name, level, chance


def _is_share(metric: Metric) -> bool:
    return metric.bounds == (0.0, 1.0)


def _rates(tier_results: TierResults) -> Iterator[ValueRow]:
    overall, headline = tier_results.overall, tier_results.tier.headline
    for metric, value in (overall.values if overall else {}).items():
        yield OVERALL, None, metric, _rate(value, _count(overall, metric)), None
    for name, item in tier_results.items.items():
        size = item.entry.prompts or _count(item, headline)
        yield name, item.group, headline, _rate(item.values[headline], size), None


def _count(item: Item | None, metric: str) -> int:
    return 0 if item is None or item.units is None else item.units.count(metric)


def _rate(value: float, n: int) -> Estimate:
    error = math.sqrt(value * (1 - value) / (n - 1)) if n > 1 else None
    low, high = wilson(value, n) if n > 0 else (None, None)
    return replace(unknown(value, n=n, units=n, note=NO_ITEMS), low=low, high=high, se=error)
