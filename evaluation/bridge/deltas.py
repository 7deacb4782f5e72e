"""Deltas of one checkpoint against another over the same items.

    nats     a delta of each metric for each item, such as delta_nats_per_token
    credit   the headline for each item, by the suite's primary metric, and by others; secondary
             metrics for each item; of items of which only the right answer is scored, its bits per
             byte are the headline
    rates    every rate over all units, the headline for each category

`settings.tiers` lists the tiers with their kinds and metrics. `overall` is the unweighted mean over
items, and all units for rates. With one tokenizer, equal nats, equal perplexity and equal bits per byte
are one hypothesis, tested on the nats. Holm's correction is over the `primary` deltas of all tiers: the
headline of each item, and the rates. An overall delta is tested without correction. Its items are
treated as independent samples, so they should not share documents (see `skip_documents` of a slice).

Nats per token and perplexities of two tokenizers have different units. What can be compared are bits
per byte, and the credit of questions and answers. A slice's blocks hold different stretches of its text
in each tokenizer, so they cannot be paired: the two bits per byte count as those of two samples of one
text, and their variances add up. Both samples largely overlap, so the interval is too wide rather than
too narrow.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.delta import OVERALL, Delta, corrected, delta_of
from evaluation.bridge.estimate import Estimate, Link, derived, identical, unknown
from evaluation.bridge.means import means
from evaluation.bridge.pairing import AGAIN, Pair, tier_pairs
from evaluation.bridge.pairs import estimate_of
from evaluation.bridge.statistics import ratio_of_blocks, unpaired_difference
from evaluation.bridge.unit_differences import differences_of
from evaluation.errors import BridgeError
from evaluation.metrics.ratios import Ratio
from evaluation.results.kinds import Item
from evaluation.results.read import Results
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import Tier

_NO_TABLE = "no interval: an external command gave no per-item scores"


def compare(ours: Results, theirs: Results, *, across_tokenizers: bool = False) -> list[Delta]:
    """Return all deltas of one checkpoint against another, with their flags.

    Args:
        across_tokenizers: Whether tokenizers may differ. This leaves out metrics per token; bits
            per byte take the place of nats per token in the family of tests.

    Raises:
        BridgeError: The two must not be compared.
    """
    check_comparable(ours, theirs, across_tokenizers=across_tokenizers)
    find = _deltas_across if across_tokenizers else tier_deltas
    deltas: list[Delta] = []
    for pair in tier_pairs(ours, theirs):
        deltas += find(pair)
    return corrected(deltas)


def tier_deltas(pair: Pair) -> list[Delta]:
    """Return the deltas of one tier, none of them corrected: of each metric, for items and their means."""
    if pair.tier.kind == "nats":
        rows = [delta for of_item in pair.both for delta in _item_deltas(pair, *of_item)]
        return [*rows, *_means_of_ratios(pair, rows)]
    if pair.tier.rates:
        overall = OVERALL, pair.ours.overall, pair.theirs.overall
        return [
            delta
            for name, mine, other in (overall, *pair.both)
            if mine is not None and other is not None
            for delta in _item_deltas(pair, name, mine, other)
        ]
    rows = [delta for of_item in pair.both for delta in _item_deltas(pair, *of_item)]
    headlines, secondary = (
        [delta for delta in rows if delta.definition.is_secondary == is_secondary]
        for is_secondary in (False, True)
    )
    return [*headlines, *_means(pair, headlines), *secondary, *_means(pair, secondary)]


def _deltas_across(pair: Pair) -> list[Delta]:
    if pair.tier.kind == "nats":
        rows = list(_unpaired(pair))
        return [*rows, *_means_of_ratios(pair, rows)]
    return [delta for delta in tier_deltas(pair) if delta.definition.is_free_of_tokens]


def _unpaired(pair: Pair) -> Iterator[Delta]:
    """Yield the deltas of metrics that need no common tokenizer; the first one is that of the tests."""
    metrics = [metric for metric in pair.tier.headline_first if metric.is_free_of_tokens]
    for name, mine, other in pair.both:
        for number, metric in enumerate(metrics):
            if metric.name not in mine.values or metric.name not in other.values:
                raise BridgeError(
                    f"{pair.tier.item} {name!r}: {pair.ours.folder} and {pair.theirs.folder} have other "
                    f"tokenizers, and not both have its {metric.words}; {AGAIN}"
                )
            values = mine.values[metric.name], other.values[metric.name]
            ours, theirs = mine.measured.get(metric.name), other.measured.get(metric.name)
            table = _no_table(values)
            if ours is not None and theirs is not None:
                table = unpaired_difference(*(ratio_of_blocks(*side) for side in (ours, theirs)))
            delta = delta_of(pair.tier, name, mine.group, metric.name, values, table)
            yield replace(delta, primary=number == 0)


def _no_table(values: tuple[float, float]) -> Estimate:
    return unknown(values[0] - values[1], n=0, units=0, note=_NO_TABLE)


def _means_of_ratios(pair: Pair, rows: Sequence[Delta]) -> list[Delta]:
    """Return the means of each metric over items; that of an exponential is the exponential of the mean."""
    deltas: dict[str, dict[str, Delta]] = {}
    for metric in pair.tier.headline_first:
        same = [row for row in rows if row.metric == f"delta_{metric.name}"]
        for mean in means(same, len(pair.ours.items), pair.groups):
            delta = deltas.setdefault(mean.item, {})
            base = pair.tier.base_of(metric)
            delta[metric.name] = mean
            if metric.link == "exp" and base.name in delta:
                delta[metric.name] = _exponential(mean, delta[base.name], metric)
    return [mean for delta in deltas.values() for mean in delta.values()]


def _exponential(mean: Delta, base: Delta, metric: Metric) -> Delta:
    """Return the delta of the exponential of another metric's mean."""
    value, other = (metric.linked(x) or math.inf for x in (base.value, base.bridge_value))
    estimate = derived(base.estimate, Link("exp", other))
    return replace(mean, value=value, bridge_value=other, estimate=estimate)


def _means(pair: Pair, rows: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean of each metric, unless an item without per-item table lacks it."""
    metrics = [pair.tier.metrics_of(mine.values) for _, mine, _ in pair.both]
    for metric in dict.fromkeys(chain.from_iterable(metrics)):
        metric_rows = [row for row in rows if row.metric == f"delta_{metric}"]
        yield from means(metric_rows, sum(metric in names for names in metrics), pair.groups)


def _item_deltas(pair: Pair, name: str, mine: Item, other: Item) -> Iterator[Delta]:
    """Yield a delta for each metric, with the stored value where there is one, else its units' own."""
    _check_units(pair, name, mine, other)
    metrics = list(_compared(pair.tier, name, mine, other))
    estimates = estimates_of(pair.tier, metrics, mine, other, is_same=_is_same(pair, mine, other))
    headline = pair.tier.headline_of(mine.values)
    for metric in metrics:
        values = _value(pair, name, metric.name, mine), _value(pair, name, metric.name, other)
        estimate = estimates.get(metric.name) or _no_table(values)
        yield delta_of(pair.tier, name, mine.group, metric.name, values, estimate, headline)


def _compared(tier: Tier, name: str, mine: Item, other: Item) -> Iterator[Metric]:
    """Yield the metrics that are compared; those that only one side's version stored are left out."""
    if tier.kind == "nats":
        names: Iterable[str] = (metric.name for metric in tier.headline_first)
        yield from (tier.metric(n) for n in names if n in mine.values and n in other.values)
    elif tier.rates and name == OVERALL:
        yield from (
            metric for metric in map(tier.metric, mine.values) if metric.name in other.values
        )
    elif mine.measured and other.measured:
        metrics = map(tier.metric, mine.measured)
        yield from (m for m in metrics if not m.is_secondary or m.name in other.measured)
    else:
        yield from map(tier.metric, mine.values)


def _value(pair: Pair, name: str, metric: str, item: Item) -> float:
    if metric in item.values:
        return item.values[metric]
    if metric in item.measured:
        return item.measured[metric].value
    raise BridgeError(
        f"{metric} of {name!r}: {pair.theirs.folder} has none, which {pair.ours.folder} has; {AGAIN}"
    )


def _check_units(pair: Pair, name: str, mine: Item, other: Item) -> None:
    left, right = mine.units, other.units
    if left is None or right is None:
        return
    pair.check_ids(name, left.ids, right.ids)
    for column in ("tokens", "bytes"):
        if column in left.sums and (left.sums[column] != right.sums[column]).any():
            raise BridgeError(
                f"{pair.tier.unit} of {name!r}: {pair.ours.folder} and {pair.theirs.folder} scored "
                f"different numbers of tokens or bytes in the same {pair.tier.unit}; score both sides again"
            )


def _is_same(pair: Pair, mine: Item, other: Item) -> bool:
    """Return whether both sides are the same: in all measures of all questions, or in their checkpoint."""
    secondary = [metric.name for metric in pair.tier.secondary if metric.name in mine.measured]
    if secondary and other.measured and pair.tier.companion is not None:
        return all(
            name in other.measured
            and np.array_equal(mine.measured[name].amounts, other.measured[name].amounts)
            for name in secondary
        )
    return pair.ours.file.checkpoint_identity == pair.theirs.file.checkpoint_identity


def estimates_of(
    tier: Tier, metrics: Sequence[Metric], mine: Item, other: Item, *, is_same: bool = False
) -> dict[str, Estimate]:
    """Return the difference of each metric; none of metrics that a side has no units of.

    A metric with the numerator of an earlier one follows from its difference: with one tokenizer, both are
    one hypothesis.

    Args:
        is_same: Whether credits that are equal on all units are no coincidence.
    """
    estimates: dict[str, Estimate] = {}
    for metric in metrics:
        differences = differences_of(mine, other, metric)
        if differences is None:
            continue
        base, judged = tier.base_of(metric), differences.judged.amounts
        if base.name in estimates:
            ours, theirs = mine.measured[metric.name], other.measured[metric.name]
            link = _link(metric, mine.measured[base.name], ours, theirs)
            estimates[metric.name] = derived(estimates[base.name], link)
        elif differences.kind == "credit" and is_same and not judged.any():
            estimates[metric.name] = identical(n=len(judged), differences=differences)
        else:
            estimates[metric.name] = estimate_of(differences)
    return estimates


def _link(metric: Metric, base: Ratio, ours: Ratio, theirs: Ratio) -> Link:
    """Return how a metric's difference follows from that of its base, which has the same numerator."""
    if metric.link == "exp":
        return Link("exp", math.exp(theirs.value))
    assert base.weights is not None
    assert ours.weights is not None
    return Link("linear", float(base.weights.sum() / ours.weights.sum()))
