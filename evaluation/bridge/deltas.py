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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from evaluation.bridge.delta import OVERALL, Delta, corrected, delta_of
from evaluation.bridge.estimate import Estimate, Link, derived, identical, unknown
from evaluation.bridge.means import means, means_over_tiers
from evaluation.bridge.pairing import AGAIN, Pair, check_comparable, tier_pairs
from evaluation.bridge.pairs import estimate_of
from evaluation.bridge.statistics import ratio_estimate, unpaired_difference
from evaluation.bridge.unit_differences import differences_of, differences_of_blocks
from evaluation.errors import BridgeError
from evaluation.results.kinds import Blocks, CreditItem, NatsItem
from evaluation.results.read import Results
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import Tier

_NO_TABLE = "no interval: an external command gave no per-item scores"


def compare(ours: Results, theirs: Results, *, across_tokenizers: bool = False) -> list[Delta]:
    """Return all deltas of one checkpoint against another.

    Args:
        theirs: Results of the checkpoint that it is compared with.
        across_tokenizers: Whether tokenizers may differ. This leaves out metrics per token; bits per
            byte take the place of nats per token in the family of tests.

    Returns:
        Deltas of all tiers with their flags.

    Raises:
        BridgeError: When the two must not be compared.
    """
    check_comparable(ours, theirs, across_tokenizers=across_tokenizers)
    find = _deltas_across if across_tokenizers else tier_deltas
    deltas: list[Delta] = []
    for pair in tier_pairs(ours, theirs):
        deltas += find(pair)
        deltas += means_over_tiers(pair.tier, pair.ours.items, pair.groups, deltas)
    return corrected(deltas)


def tier_deltas(pair: Pair) -> list[Delta]:
    """Return the deltas of one tier, none of them corrected.

    Returns:
        Deltas of each metric, for items and their means; none for means over several tiers.
    """
    if pair.tier.kind == "nats":
        return _ratios(pair)
    return _rates(pair) if pair.tier.rates else _credits(pair)


def _deltas_across(pair: Pair) -> list[Delta]:
    if pair.tier.kind == "nats":
        rows = list(_unpaired(pair))
        return [*rows, *_means_of_ratios(pair, rows)]
    return [delta for delta in tier_deltas(pair) if delta.definition.is_free_of_tokens]


def _unpaired(pair: Pair) -> Iterator[Delta]:
    """Yield the deltas of metrics that need no common tokenizer; the first one is that of the tests."""
    metrics = [metric for metric in pair.tier.headline_first if metric.is_free_of_tokens]
    for name, mine, other in pair.both(NatsItem):
        for number, metric in enumerate(metrics):
            if metric.name not in mine.values or metric.name not in other.values:
                raise BridgeError(
                    f"{pair.tier.item} {name!r}: {pair.ours.folder} and {pair.theirs.folder} have other "
                    f"tokenizers, and not both have its {metric.words}; {AGAIN}"
                )
            values = mine.values[metric.name], other.values[metric.name]
            sides = [one.blocks and one.blocks.ratio(metric) for one in (mine, other)]
            table = _no_table(values)
            if sides[0] is not None and sides[1] is not None:
                table = unpaired_difference(*(ratio_estimate(side) for side in sides if side))
            delta = delta_of(pair.tier, name, mine.group, metric.name, values, table)
            yield replace(delta, primary=number == 0)


def _no_table(values: tuple[float, float]) -> Estimate:
    return unknown(values[0] - values[1], n=0, units=0, note=_NO_TABLE)


def _ratios(pair: Pair) -> list[Delta]:
    """Return the deltas of each item and their means."""
    rows = [delta for one in pair.both(NatsItem) for delta in _blocks_item(pair, *one)]
    return [*rows, *_means_of_ratios(pair, rows)]


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


def _blocks_item(pair: Pair, name: str, mine: NatsItem, other: NatsItem) -> Iterator[Delta]:
    estimates: Mapping[str, Estimate] = {}
    if mine.blocks is not None and other.blocks is not None:
        _check_blocks(pair, name, mine.blocks, other.blocks)
        estimates = ratio_estimates(pair.tier, mine.blocks, other.blocks)
    for metric in pair.tier.headline_first:
        if metric.name in mine.values and metric.name in other.values:
            values = mine.values[metric.name], other.values[metric.name]
            estimate = estimates.get(metric.name, _no_table(values))
            yield delta_of(pair.tier, name, mine.group, metric.name, values, estimate)


def _check_blocks(pair: Pair, name: str, mine: Blocks, other: Blocks) -> None:
    pair.check_ids(name, mine.ids.tolist(), other.ids.tolist())
    if (mine.tokens != other.tokens).any() or (mine.bytes != other.bytes).any():
        raise BridgeError(
            f"{pair.tier.unit} of {name!r}: {pair.ours.folder} and {pair.theirs.folder} scored "
            "different numbers of tokens or bytes in the same blocks; score both sides again"
        )


def ratio_estimates(tier: Tier, mine: Blocks, other: Blocks) -> dict[str, Estimate]:
    """Return the difference of each metric of a tier of blocks.

    A metric with the numerator of an earlier one follows from its difference: with one tokenizer, both are
    one hypothesis.

    Args:
        mine: Blocks of a slice by our side.
        other: The same blocks by the other side, in the same order.

    Returns:
        Estimates by metric; none of metrics that a side lacks.
    """
    estimates: dict[str, Estimate] = {}
    for metric in tier.headline_first:
        differences = differences_of_blocks(mine, other, metric)
        ours, theirs = mine.ratio(metric), other.ratio(metric)
        if differences is None or ours is None or theirs is None:
            continue
        base = tier.base_of(metric)
        if base == metric:
            estimates[metric.name] = estimate_of(differences)
        elif metric.link == "exp":
            link = Link("exp", math.exp(theirs.value))
            estimates[metric.name] = derived(estimates[base.name], link)
        elif (of_base := mine.ratio(base)) is not None:
            link = Link("linear", float(of_base.weights.sum() / ours.weights.sum()))
            estimates[metric.name] = derived(estimates[base.name], link)
    return estimates


def _credits(pair: Pair) -> list[Delta]:
    """Return headlines, then secondary metrics, each with the means over the items that have it."""
    rows = [delta for one in pair.both(CreditItem) for delta in _credit_item(pair, *one)]
    more = [delta for one in pair.both(CreditItem) for delta in _secondary_deltas(pair, *one)]
    return [*rows, *_means(pair, rows), *more, *_means(pair, more)]


def _means(pair: Pair, rows: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean of each metric, unless an item without per-item table lacks it."""
    metrics = [pair.tier.metrics_of(mine.values) for _, mine, _ in pair.both(CreditItem)]
    for metric in dict.fromkeys(chain.from_iterable(metrics)):
        own = [row for row in rows if row.metric == f"delta_{metric}"]
        yield from means(own, sum(metric in one for one in metrics), pair.groups)


def _secondary_deltas(
    pair: Pair, name: str, mine: CreditItem, other: CreditItem
) -> Iterator[Delta]:
    left, right = mine.secondary, other.secondary
    if left is None or right is None:
        return
    pair.check_ids(name, left.ids, right.ids)
    headline = pair.tier.headline_of(mine.values)
    for metric, ours in left.values.items():
        differences = differences_of(mine, other, pair.tier.metric(metric))
        if differences is not None:
            values, estimate = (
                (float(ours.mean()), float(right.values[metric].mean())),
                estimate_of(differences),
            )
            yield delta_of(pair.tier, name, mine.group, metric, values, estimate, headline)


def _credit_item(pair: Pair, name: str, mine: CreditItem, other: CreditItem) -> Iterator[Delta]:
    """Yield a delta for each metric, with the stored value where there is one, else its units' mean."""
    headline = pair.tier.headline_of(mine.values)
    for metric in mine.credits if other.credits and mine.credits else mine.values:
        estimate = _credit_estimate(pair, name, metric, mine, other)
        values = _value(pair, name, metric, mine), _value(pair, name, metric, other)
        estimate = estimate or _no_table(values)
        yield delta_of(pair.tier, name, mine.group, metric, values, estimate, headline)


def _value(pair: Pair, name: str, metric: str, item: CreditItem) -> float:
    if metric in item.values:
        return item.values[metric]
    if metric in item.credits:
        return float(item.credits[metric].credit.mean())
    raise BridgeError(
        f"{metric} of {name!r}: {pair.theirs.folder} has none, which {pair.ours.folder} has; {AGAIN}"
    )


def _credit_estimate(
    pair: Pair, what: str, metric: str, mine: CreditItem, other: CreditItem
) -> Estimate | None:
    """Return the difference of credits; None where an external command gave no units."""
    left, right = mine.credits.get(metric), other.credits.get(metric)
    if (left is None or right is None) and pair.is_external:
        return None
    if left is not None and right is not None:
        left, right = left.without(right), right.without(left)
    pair.check_ids(what, left.ids if left else (), right.ids if right else ())
    estimate = differences_of(mine, other, pair.tier.metric(metric))
    if estimate is None:
        return None
    judged = estimate.judged.amounts
    if not judged.any() and _is_same(pair, mine, other):
        return identical(n=len(judged), differences=estimate)
    return estimate_of(estimate)


def _is_same(pair: Pair, mine: CreditItem, other: CreditItem) -> bool:
    """Return whether both sides are the same: in all measures of all questions, or in their checkpoint."""
    ours, theirs = mine.secondary, other.secondary
    if ours is not None and theirs is not None and pair.tier.companion is not None:
        return ours.ids == theirs.ids and all(
            np.array_equal(values, theirs.values[metric]) for metric, values in ours.values.items()
        )
    return pair.ours.file.checkpoint_identity == pair.theirs.file.checkpoint_identity


def _rates(pair: Pair) -> list[Delta]:
    rows = []
    mine, other = pair.ours.overall, pair.theirs.overall
    if mine is not None and other is not None:
        names = [metric.name for metric in pair.tier.metrics]
        for rate in mine.values:
            if rate in names and rate in other.values:
                values = mine.values[rate], other.values[rate]
                estimate = _credit_estimate(pair, rate, rate, mine, other) or _no_table(values)
                rows.append(delta_of(pair.tier, OVERALL, None, rate, values, estimate))
    return rows + [delta for one in pair.both(CreditItem) for delta in _credit_item(pair, *one)]
