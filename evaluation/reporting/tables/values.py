"""Scores of one checkpoint in long form, each with its own 95 % interval over items.

These intervals are wide, as they hold how much items differ among themselves; what tells two
checkpoints apart is the paired delta.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from evaluation.bridge.outcomes import item_credits, prompt_outcome
from evaluation.bridge.results import Results, SliceResult, TaskResult
from evaluation.bridge.statistics import (
    ALPHA,
    Estimate,
    macro_mean,
    paired_mean,
    paired_ratio,
    quantile,
    unknown,
)
from evaluation.settings.tiers import TierName

OVERALL = "overall"
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


def values_of(results: Results) -> list[Value]:
    """All metrics of all items, each tier's overall ones last."""
    return [*_tier2(results), *_tier3(results), *_tier4(results)]


def _tier2(results: Results) -> Iterable[Value]:
    if not results.slices:
        return []
    nats = {name: _nats(result) for name, result in results.slices.items()}
    rows = [
        row for name, result in results.slices.items() for row in _slice(name, result, nats[name])
    ]
    overall = macro_mean(nats)
    per_byte = [result.bits_per_byte for result in results.slices.values()]
    known = [value for value in per_byte if value is not None]
    bits = math.fsum(known) / len(known) if len(known) == len(per_byte) else None
    return [*rows, *_nats_rows(OVERALL, None, overall, math.exp(overall.value), bits, None)]


def _nats(result: SliceResult) -> Estimate:
    blocks = result.blocks
    if blocks is None:
        return unknown(result.nats_per_token, n=0, units=0, note=NO_ITEMS)
    return paired_ratio(blocks.nats, np.zeros_like(blocks.nats), blocks.tokens)


def _slice(name: str, result: SliceResult, nats: Estimate) -> list[Value]:
    bits = None
    if result.blocks is not None and result.blocks.bytes.sum() > 0:
        blocks = result.blocks
        bits = paired_ratio(blocks.nats, np.zeros_like(blocks.nats), blocks.bytes * math.log(2))
    return _nats_rows(name, result.group, nats, result.ppl, result.bits_per_byte, bits)


def _nats_rows(
    item: str,
    group: str | None,
    nats: Estimate,
    ppl: float,
    bits_per_byte: float | None,
    bits: Estimate | None,
) -> list[Value]:
    low, high = nats.low, nats.high
    base = Value(
        tier="tier2",
        item=item,
        group=group,
        metric="nats_per_token",
        value=nats.value,
        low=low,
        high=high,
        n=nats.n,
    )
    rows = [replace(base, metric="ppl", value=ppl, low=_exp(low), high=_exp(high)), base]
    if bits_per_byte is not None:
        bounds = (bits.low, bits.high) if bits else (None, None)
        rows.append(
            replace(
                base, metric="bits_per_byte", value=bits_per_byte, low=bounds[0], high=bounds[1]
            )
        )
    return rows


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(value)


def _tier3(results: Results) -> Iterable[Value]:
    if not results.tasks:
        return []
    primaries: dict[str, Estimate] = {}
    rows = []
    for name, result in results.tasks.items():
        estimates = _accuracies(result)
        primaries[name] = estimates["acc"]
        chance = result.entry.get("chance")
        rows += [
            _accuracy(name, result.group, metric, estimate, chance)
            for metric, estimate in estimates.items()
        ]
    chances = [result.entry.get("chance") for result in results.tasks.values()]
    known = [chance for chance in chances if chance is not None]
    chance = math.fsum(known) / len(known) if len(known) == len(chances) else None
    return [*rows, _accuracy(OVERALL, None, "acc", macro_mean(primaries), chance)]


def _accuracies(result: TaskResult) -> dict[str, Estimate]:
    """By the primary metric first, called `acc`; the others under their own names."""
    if result.candidates is None:
        return {"acc": unknown(result.accuracy, n=0, units=0, note=NO_ITEMS)}
    credits = item_credits(result.candidates)
    found = {
        metric: paired_mean(credit, np.zeros_like(credit), credits.clusters, credits.strata)
        for metric, credit in credits.credit.items()
    }
    primary = found.pop(result.primary or "raw")
    return {"acc": primary, **{f"acc_{metric}": value for metric, value in found.items()}}


def _accuracy(
    item: str, group: str | None, metric: str, estimate: Estimate, chance: float | None
) -> Value:
    return Value(
        tier="tier3",
        item=item,
        group=group,
        metric=metric,
        value=estimate.value,
        low=None if estimate.low is None else max(0.0, estimate.low),
        high=None if estimate.high is None else min(1.0, estimate.high),
        n=estimate.n,
        chance=chance,
    )


def _tier4(results: Results) -> Iterable[Value]:
    probes = results.probes
    if probes is None:
        return []
    path = results.headers["tier4"].path
    rows = []
    for metric, value in probes.rates.items():
        if value is not None:
            counted = [prompt_outcome(prompt, metric, path) for prompt in probes.prompts]
            n = sum(passed is not None for passed in counted)
            rows.append(_rate(OVERALL, None, metric, value, n))
    metric = "all_checks_pass_rate"
    for category, entry in probes.by_category.items():
        if entry.get(metric) is not None:
            n = int(entry.get("prompts", 0))
            rows.append(_rate(category, category, metric, entry[metric], n))
    return rows


def _rate(item: str, group: str | None, metric: str, value: float, n: int) -> Value:
    """Wilson's interval, which also holds for rates of 0 and 1."""
    low = high = None
    if n > 0:
        z = quantile(1 - ALPHA / 2, None)
        centre = (value + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(value * (1 - value) / n + z * z / (4 * n * n))
        low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Value(
        tier="tier4", item=item, group=group, metric=metric, value=value, low=low, high=high, n=n
    )
