"""Scores of one checkpoint in long form, each with its own 95 % interval over items.

These intervals are wide, as they hold how much items differ among themselves; what tells two
checkpoints apart is the paired delta.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.statistics import Estimate, macro_mean, paired_mean, unknown
from evaluation.bridge.text_blocks import paired_ratio
from evaluation.metrics.spread import Floats, wilson
from evaluation.results.kinds import CreditItem, NatsItem
from evaluation.results.read import Results, TierResults
from evaluation.results.tier_files import LARGEST
from evaluation.settings.tiers import Tier, TierName

NO_ITEMS = "no per-item scores"

Bounds = tuple[float | None, float | None]


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
    """All metrics of all items, each tier's overall ones last (those of rates first)."""
    return [value for tier in results.tiers.values() for value in tier_values(tier)]


def tier_values(found: TierResults) -> list[Value]:
    """All metrics of all items of one tier."""
    if found.tier.kind == "nats":
        nats = {name: one for name, one in found.items.items() if isinstance(one, NatsItem)}
        return _nats(found.tier, nats)
    credits = {name: one for name, one in found.items.items() if isinstance(one, CreditItem)}
    if found.tier.rates:
        return list(_rates(found.tier, credits, found.overall))
    return list(_credits(found.tier, credits))


def _nats(tier: Tier, items: Mapping[str, NatsItem]) -> list[Value]:
    estimates = {name: _ratio(item, "tokens") for name, item in items.items()}
    nats = {
        name: known or unknown(item.values["nats_per_token"], n=0, units=0, note=NO_ITEMS)
        for (name, item), known in zip(items.items(), estimates.values(), strict=True)
    }
    rows: list[Value] = []
    for name, item in items.items():
        rows += _nats_rows(tier, name, item.group, nats[name], item.values, _ratio(item, "bytes"))
    overall = macro_mean(nats)
    means = {"ppl": math.exp(overall.value)}
    bits = _mean_bits(items)
    if bits is not None:
        means["bits_per_byte"] = bits.value
    return [*rows, *_nats_rows(tier, OVERALL, None, overall, means, bits)]


def _mean_bits(items: Mapping[str, NatsItem]) -> Estimate | None:
    """The mean bits per byte; None unless every item has them."""
    values = {name: item.values.get("bits_per_byte") for name, item in items.items()}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(values):
        return None
    parts = {
        name: _ratio(items[name], "bytes") or unknown(value, n=0, units=0, note=NO_ITEMS)
        for name, value in known.items()
    }
    mean = macro_mean(parts)
    return replace(mean, value=math.fsum(known.values()) / len(known))


def _ratio(item: NatsItem, weight: str) -> Estimate | None:
    """Nats per token, or bits per byte; None where that is not known."""
    if item.blocks is None:
        return None
    nats, none = item.blocks.nats, np.zeros_like(item.blocks.nats)
    weights: Floats = item.blocks.tokens
    if weight == "bytes":
        weights = item.blocks.bytes * math.log(2)
    return paired_ratio(nats, none, weights) if weights.sum() > 0 else None


def _nats_rows(
    tier: Tier,
    item: str,
    group: str | None,
    nats: Estimate,
    values: Mapping[str, float],
    bits: Estimate | None,
) -> list[Value]:
    per_byte: Bounds = (None, None) if bits is None else (bits.low, bits.high)
    known: dict[str, tuple[float | None, Bounds]] = {
        "ppl": (values.get("ppl"), (_exp(nats.low), _exp(nats.high))),
        "nats_per_token": (nats.value, (nats.low, nats.high)),
        "bits_per_byte": (values.get("bits_per_byte"), per_byte),
    }
    notes = {"bits_per_byte": bits.note if bits else NO_ITEMS}
    rows = []
    for metric in tier.metrics:
        value, bounds = known.get(metric.name, (None, (None, None)))
        if value is not None:
            note = notes.get(metric.name, nats.note)
            rows.append(_value(tier, item, group, metric.name, value, bounds, nats.n, note=note))
    return rows


def _value(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    value: float,
    bounds: Bounds,
    n: int,
    chance: float | None = None,
    note: str | None = None,
) -> Value:
    """`note` says why there are no bounds, and is of no use where there are."""
    return Value(
        tier=tier.name,
        item=item,
        group=group,
        metric=metric,
        value=value,
        low=bounds[0],
        high=bounds[1],
        n=n,
        chance=chance,
        note=None if bounds[0] is not None else note or "too few items",
    )


def _exp(value: float | None) -> float | None:
    """exp of a bound; one that no float can hold is none."""
    return None if value is None or value > LARGEST else math.exp(value)


def _credits(tier: Tier, items: Mapping[str, CreditItem]) -> Iterable[Value]:
    headlines: dict[str, Estimate] = {}
    for name, item in items.items():
        estimates = _means(tier, item)
        headlines[name] = estimates[tier.headline]
        for metric, estimate in estimates.items():
            one = _mean(tier, name, item.group, metric, estimate, item.chance)
            told = item.bounds.get(metric)
            yield one if told is None else replace(one, low=told[0], high=told[1], note=None)
    chances = [item.chance for item in items.values()]
    known = [chance for chance in chances if chance is not None]
    chance = math.fsum(known) / len(known) if len(known) == len(chances) else None
    yield _mean(tier, OVERALL, None, tier.headline, macro_mean(headlines), chance)
    yield from _companions(tier, items)


def _companions(tier: Tier, items: Mapping[str, CreditItem]) -> Iterable[Value]:
    """What stands beside the headline, of each item that has it, and the mean if all do."""
    for metric in tier.companions:
        estimates: dict[str, Estimate] = {}
        for name, item in items.items():
            known = item.companions
            if known is not None and metric.name in known.values:
                one = known.values[metric.name]
                estimates[name] = paired_mean(one, np.zeros_like(one), known.clusters, known.strata)
                yield _measure(tier, name, item.group, metric.name, estimates[name])
        if len(estimates) == len(items):
            yield _measure(tier, OVERALL, None, metric.name, macro_mean(estimates))


def _measure(tier: Tier, item: str, group: str | None, metric: str, known: Estimate) -> Value:
    return _value(
        tier, item, group, metric, known.value, (known.low, known.high), known.n, note=known.note
    )


def _means(tier: Tier, item: CreditItem) -> dict[str, Estimate]:
    """By metric, the headline first."""
    if not item.credits:
        value = item.values[tier.headline]
        return {tier.headline: unknown(value, n=0, units=0, note=NO_ITEMS)}
    return {
        metric: paired_mean(one.credit, np.zeros_like(one.credit), one.clusters, one.strata)
        for metric, one in item.credits.items()
    }


def _mean(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    estimate: Estimate,
    chance: float | None,
) -> Value:
    """Where all items are right, or none, Wilson's interval in place of an empty one."""
    if estimate.value in (0.0, 1.0) and estimate.n > 1:
        bounds: Bounds = _wilson(estimate.value, estimate.n)
    else:
        low = None if estimate.low is None else max(0.0, estimate.low)
        bounds = low, None if estimate.high is None else min(1.0, estimate.high)
    note = estimate.note
    return _value(tier, item, group, metric, estimate.value, bounds, estimate.n, chance, note)


def _rates(
    tier: Tier, items: Mapping[str, CreditItem], overall: CreditItem | None
) -> Iterable[Value]:
    for metric, value in (overall.values if overall else {}).items():
        units = overall.credits.get(metric) if overall else None
        n = len(units.ids) if units else 0
        yield _value(tier, OVERALL, None, metric, value, _wilson(value, n), n, note=NO_ITEMS)
    for name, item in items.items():
        value, units = item.values[tier.headline], item.credits.get(tier.headline)
        n = item.size or (len(units.ids) if units else 0)
        bounds = _wilson(value, n)
        yield _value(tier, name, item.group, tier.headline, value, bounds, n, note=NO_ITEMS)


def _wilson(value: float, n: int) -> Bounds:
    return wilson(value, n) if n > 0 else (None, None)
