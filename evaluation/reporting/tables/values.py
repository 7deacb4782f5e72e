"""Scores of one checkpoint in long form, each with its own 95 % interval over items.

These intervals are wide, as they hold how much items differ among themselves; what tells two
checkpoints apart is the paired delta.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evaluation.bridge.delta import OVERALL, weights_of_means
from evaluation.bridge.statistics import Estimate, macro_mean, paired_mean, unknown
from evaluation.bridge.text_blocks import paired_ratio
from evaluation.metrics.variance import wilson
from evaluation.results.kinds import CreditItem, NatsItem
from evaluation.results.read import Results, TierResults
from evaluation.results.tier_files import LARGEST
from evaluation.settings.tiers import Tier, TierName

NO_ITEMS = "no per-item scores"


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


def values_of(results: Results) -> list[Value]:
    """Return all metrics of all items, each tier's overall ones last (those of rates first)."""
    return [value for tier in results.tiers.values() for value in tier_values(tier)]


def tier_values(found: TierResults) -> list[Value]:
    """Return all metrics of all items of one tier."""
    if found.tier.kind == "nats":
        nats = {name: one for name, one in found.items.items() if isinstance(one, NatsItem)}
        return list(_nats(found, nats))
    credits = {name: one for name, one in found.items.items() if isinstance(one, CreditItem)}
    if found.tier.rates:
        return list(_rates(found.tier, credits, found.overall))
    return [*_credits(found, credits), *_companions(found, credits)]


def _value(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    known: Estimate,
    chance: float | None = None,
) -> Value:
    """Return the note says why there are no bounds, and is left out where there are."""
    return Value(
        tier=tier.name,
        item=item,
        group=group,
        metric=metric,
        value=known.value,
        low=known.low,
        high=known.high,
        n=known.n,
        chance=chance,
        note=None if known.low is not None else known.note or "too few items",
    )


def _nats(found: TierResults, items: Mapping[str, NatsItem]) -> Iterator[Value]:
    tier = found.tier
    nats, ratios, bits = {}, {}, {}
    for name, item in items.items():
        nats[name] = _ratio(item, "tokens") or _no_items(item.values["nats_per_token"])
        stored = item.values.get("bits_per_byte")
        if stored is not None:
            ratios[name] = _ratio(item, "bytes") or _no_items(stored)
            bits[name] = replace(ratios[name], value=stored, n=nats[name].n)
        ppl = item.values["ppl"]
        yield from _nats_values(tier, name, item.group, nats[name], ppl, bits.get(name))
    for whole, weights in weights_of_means(items, len(items), found.file.groups):
        mean, mean_bits = _mean(nats, weights), None
        if weights.keys() <= bits.keys():
            value = _mean(bits, weights).value
            mean_bits = replace(_mean(ratios, weights), value=value, n=mean.n)
        yield from _nats_values(tier, whole, None, mean, math.exp(mean.value), mean_bits)


def _mean(known: Mapping[str, Estimate], weights: Mapping[str, float]) -> Estimate:
    return macro_mean({name: known[name] for name in weights}, weights=weights)


def _no_items(value: float) -> Estimate:
    return unknown(value, n=0, units=0, note=NO_ITEMS)


def _ratio(item: NatsItem, weight: Literal["tokens", "bytes"]) -> Estimate | None:
    """Return nats per token, or bits per byte; None where that is not known."""
    if item.blocks is None:
        return None
    nats, none = item.blocks.nats, np.zeros_like(item.blocks.nats)
    weights = item.blocks.bytes * math.log(2) if weight == "bytes" else item.blocks.tokens
    return paired_ratio(nats, none, weights) if weights.sum() > 0 else None


def _nats_values(
    tier: Tier, item: str, group: str | None, nats: Estimate, ppl: float, bits: Estimate | None
) -> Iterator[Value]:
    known = {
        "ppl": replace(nats, value=ppl, low=_exp(nats.low), high=_exp(nats.high)),
        "nats_per_token": nats,
        "bits_per_byte": bits,
    }
    for metric in tier.metrics:
        estimate = known.get(metric.name)
        if estimate is not None:
            yield _value(tier, item, group, metric.name, estimate)


def _exp(value: float | None) -> float | None:
    """Return exp of a bound, or None where no float can hold it."""
    return None if value is None or value > LARGEST else math.exp(value)


def _credits(found: TierResults, items: Mapping[str, CreditItem]) -> Iterator[Value]:
    tier = found.tier
    headlines: dict[str, dict[str, Estimate]] = {}
    for name, item in items.items():
        estimates = {
            metric: paired_mean(one.credit, np.zeros_like(one.credit), one.clusters, one.strata)
            for metric, one in item.credits.items()
        } or {metric: _no_items(value) for metric, value in item.values.items()}
        for metric, estimate in estimates.items():
            headlines.setdefault(metric, {})[name] = estimate
            known = _within_0_and_1(estimate)
            if metric in item.bounds:  # the file's own
                low, high = item.bounds[metric]
                known = replace(known, low=low, high=high)
            yield _value(tier, name, item.group, metric, known, item.chance)
    for whole, metric, mean in _means(found, items, headlines):
        chances = [(items[name].chance, weight) for name, weight in mean.weights.items()]
        drawn = [weight * chance for chance, weight in chances if chance is not None]
        chance = math.fsum(drawn) if len(drawn) == len(chances) else None
        is_rate = tier.metric(metric).unit == "fraction"
        known = _within_0_and_1(mean) if is_rate else mean
        yield _value(tier, whole, None, metric, known, chance)


def _means(
    found: TierResults,
    items: Mapping[str, CreditItem],
    known: Mapping[str, Mapping[str, Estimate]],
) -> Iterator[tuple[str, str, Estimate]]:
    """Yield the means of each headline and secondary metric over the items of its kind, if all have it."""
    kinds = [found.tier.metrics_of(item.values) for item in items.values()]
    for metric, estimates in known.items():
        count = sum(metric in kind for kind in kinds)
        wholes = weights_of_means(estimates, count, found.file.groups) if count else ()
        for item, weights in wholes:
            yield item, metric, _mean(estimates, weights)


def _within_0_and_1(known: Estimate) -> Estimate:
    """Cut the interval of a rate; where all items are right, or none, it is Wilson's."""
    if known.value in (0.0, 1.0) and known.n > 1:
        low, high = wilson(known.value, known.n)
        return replace(known, low=low, high=high)
    if known.low is None or known.high is None:
        return known
    return replace(known, low=max(0.0, known.low), high=min(1.0, known.high))


def _companions(found: TierResults, items: Mapping[str, CreditItem]) -> Iterator[Value]:
    """Yield what stands next to credits, of each item that has it; the mean if all do."""
    tier = found.tier
    for metric in tier.companions:
        estimates: dict[str, Estimate] = {}
        for name, item in items.items():
            known = item.companions
            if known is not None and metric.name in known.values:
                one = known.values[metric.name]
                estimates[name] = paired_mean(one, np.zeros_like(one), known.clusters, known.strata)
                yield _value(tier, name, item.group, metric.name, estimates[name])
        for whole, _, mean in _means(found, items, {metric.name: estimates} if estimates else {}):
            yield _value(tier, whole, None, metric.name, mean)


def _rates(
    tier: Tier, items: Mapping[str, CreditItem], overall: CreditItem | None
) -> Iterator[Value]:
    for metric, value in (overall.values if overall else {}).items():
        units = overall.credits.get(metric) if overall else None
        known = _rate(value, len(units.ids) if units else 0)
        yield _value(tier, OVERALL, None, metric, known)
    for name, item in items.items():
        units = item.credits.get(tier.headline)
        known = _rate(item.values[tier.headline], item.size or (len(units.ids) if units else 0))
        yield _value(tier, name, item.group, tier.headline, known)


def _rate(value: float, n: int) -> Estimate:
    low, high = wilson(value, n) if n > 0 else (None, None)
    return replace(unknown(value, n=n, units=n, note=NO_ITEMS), low=low, high=high)
