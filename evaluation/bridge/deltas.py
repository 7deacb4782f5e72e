"""Deltas of one checkpoint against another over the same items.

    nats     a delta of each metric for each item, such as delta_nats_per_token
    credit   the headline for each item, by the suite's primary metric, and by others; secondary
             metrics for each item; of items of which only the right answer is scored, its bits per
             byte are the headline
    rates    every rate over all units, the headline for each category

`overall` is the unweighted mean over items, and all units for rates. With one tokenizer, equal nats, equal
perplexity and equal bits per byte are one hypothesis, tested on the nats. Holm's correction is over the
`primary` deltas of all tiers: the headline of each item, and the rates.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.delta import OVERALL, Delta, corrected, delta_of
from evaluation.bridge.estimate import Estimate, exponential, scaled, unknown
from evaluation.bridge.means import means
from evaluation.bridge.paired import estimate_of, paired_of
from evaluation.bridge.pairing import AGAIN, Pair, tier_pairs
from evaluation.errors import BridgeError
from evaluation.metrics.layout import Grouping, numbered
from evaluation.results.read import Item, Results
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import Tier

_NO_TABLE = "no interval: an external command gave no per-item scores"


def compare(ours: Results, theirs: Results) -> list[Delta]:
    """Return all deltas of one checkpoint against another, with their flags; raise BridgeError."""
    check_comparable(ours, theirs)
    deltas: list[Delta] = []
    for pair in tier_pairs(ours, theirs):
        rows = [*_of_tier(pair)]
        deltas += rows if pair.tier.rates else [*rows, *means(pair, rows)]
    return corrected(deltas)


def groups_of(items: Mapping[str, Item]) -> dict[str, Grouping]:
    """Return the groups of the items' units, numbered across items."""
    layouts = {name: item.units.layout for name, item in items.items() if item.units is not None}
    return dict(zip(layouts, numbered(tuple(layouts.values())), strict=True))


def _of_tier(pair: Pair) -> Iterator[Delta]:
    groups = groups_of(pair.theirs.items)
    overall = pair.ours.overall, pair.theirs.overall
    if pair.tier.rates and overall[0] is not None and overall[1] is not None:
        own = None if overall[1].units is None else overall[1].units.layout.groups
        yield from _of_item(pair, OVERALL, *overall, own)  # type: ignore[arg-type]
    for name, mine, other in pair.both:
        yield from _of_item(pair, name, mine, other, groups.get(name))


def _of_item(
    pair: Pair, name: str, mine: Item, other: Item, groups: Grouping | None
) -> Iterator[Delta]:
    """Yield a delta for each metric, with the stored value where there is one, else its units' own.

    A metric with the numerator of an earlier one follows from its difference: with one tokenizer, both are
    one hypothesis.
    """
    _check_units(pair, name, mine, other)
    headline, same = pair.tier.headline_of(mine.values), _is_same(pair, mine, other)
    estimates: dict[str, Estimate] = {}
    for metric in _compared(pair.tier, name, mine, other):
        values = _value(pair, name, metric.name, mine), _value(pair, name, metric.name, other)
        base = estimates.get(pair.tier.base_of(metric).name)
        paired = None if groups is None else paired_of(mine, other, metric, groups)
        if paired is None:
            estimate = unknown(values[0] - values[1], n=0, units=0, note=_NO_TABLE)
        elif base is None or base.paired is None or base.paired.weights is None:
            estimate = estimate_of(paired, same=same)
        elif metric.link == "exp":
            estimate = exponential(base, values[1])
        else:
            assert paired.weights is not None
            estimate = scaled(base, float(base.paired.weights.sum() / paired.weights.sum()))
        estimates[metric.name] = estimate
        yield delta_of(pair.tier, name, mine.group, metric.name, values, estimate, headline)


def _compared(tier: Tier, name: str, mine: Item, other: Item) -> Iterable[Metric]:
    """Return the metrics that are compared; those that only one side's version stored are left out."""
    if tier.kind == "nats":
        return (m for m in tier.headline_first if m.name in mine.values and m.name in other.values)
    if tier.rates and name == OVERALL:
        return (tier.metric(name) for name in mine.values if name in other.values)
    if not mine.measured or not other.measured:
        return map(tier.metric, mine.values)
    metrics = map(tier.metric, mine.measured)
    return (
        metric for metric in metrics if not metric.is_secondary or metric.name in other.measured
    )


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
    """Return whether both sides are the same: in all measures of all questions, or in their checkpoint.

    Measures of generated answers do not show it: two checkpoints may share rates and lengths by chance.
    """
    ours, theirs = mine.measured, other.measured
    if len(ours) > 1 and pair.tier.unranked and ours.keys() == theirs.keys():
        amounts = ((ours[name].amounts, theirs[name].amounts) for name in ours)
        return all(np.array_equal(*sides, equal_nan=True) for sides in amounts)
    return pair.ours.file.checkpoint_identity == pair.theirs.file.checkpoint_identity
