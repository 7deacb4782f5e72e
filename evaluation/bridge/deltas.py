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

from collections.abc import Iterable, Iterator

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

_NO_TABLE = "no interval: an external command gave no per-item scores"


def compare(ours: Results, theirs: Results) -> list[Delta]:
    """Return all deltas of one checkpoint against another, with their flags; raise BridgeError."""
    check_comparable(ours, theirs)
    deltas: list[Delta] = []
    for pair in tier_pairs(ours, theirs):
        units = {n: item.units for n, item in pair.theirs.items.items() if item.units is not None}
        groups = dict(zip(units, numbered(tuple(u.layout for u in units.values())), strict=True))
        items, (mine, other) = [*pair.both], (pair.ours.overall, pair.theirs.overall)
        if mine is not None and other is not None:  # of a tier of rates
            items.insert(0, (OVERALL, mine, other))
            groups |= {} if other.units is None else {OVERALL: other.units.layout.groups}
        rows = [row for item in items for row in _of_item(pair, *item, groups.get(item[0]))]
        deltas += rows if pair.tier.rates else [*rows, *means(pair, rows)]
    return corrected(deltas)


def _of_item(
    pair: Pair, name: str, mine: Item, other: Item, groups: Grouping | None
) -> Iterator[Delta]:
    """Yield a delta for each metric.

    A metric of blocks follows from the difference of the headline, with which it has the numerator in common:
    with one tokenizer, both are one hypothesis.
    """
    _check_units(pair, name, mine, other)
    tier, same = pair.tier, _is_same(pair, mine, other)
    headline = tier.headline_of(mine.values)
    base: Estimate | None = None
    for metric, values in _values(pair, name, mine, other).items():
        about = tier.metric(metric)
        paired = None if groups is None else paired_of(mine, other, about, groups)
        if paired is None:
            estimate = unknown(values[0] - values[1], n=0, units=0, note=_NO_TABLE)
        elif base is None or base.paired is None or base.paired.weights is None:
            estimate = estimate_of(paired, same=same)
        elif about.link == "exp":
            estimate = exponential(base, values[1])
        else:
            assert paired.weights is not None
            estimate = scaled(base, float(base.paired.weights.sum() / paired.weights.sum()))
        base = base or estimate
        yield delta_of(tier, name, mine.group, metric, values, estimate, headline)


def _values(pair: Pair, name: str, mine: Item, other: Item) -> dict[str, tuple[float, float]]:
    """Return both sides' values of each metric that is compared, as stored, or else of their units.

    Metrics that only one side's version stored are left out.
    """
    tier, sides = pair.tier, (mine, other)
    names: Iterable[str] = mine.values
    if tier.kind == "nats":
        both = mine.values.keys() & other.values.keys()
        names = [metric.name for metric in tier.headline_first if metric.name in both]
    elif tier.rates and name == OVERALL:
        names = [metric for metric in mine.values if metric in other.values]
    elif mine.measured and other.measured:
        there = other.measured
        names = [m for m in mine.measured if m in there or not tier.metric(m).is_secondary]
    stored = [
        {**{m: ratio.value for m, ratio in side.measured.items()}, **side.values} for side in sides
    ]
    for metric in names:
        if any(metric not in of_side for of_side in stored):
            raise BridgeError(
                f"{metric} of {name!r}: {pair.theirs.folder} has none, which {pair.ours.folder} has; {AGAIN}"
            )
    return {metric: (stored[0][metric], stored[1][metric]) for metric in names}


def _check_units(pair: Pair, name: str, mine: Item, other: Item) -> None:
    """Refuse items that do not hold the same units in the same order; raise BridgeError."""
    left, right = mine.units, other.units
    if left is None or right is None:
        return
    if [*left.ids] != [*right.ids]:
        alone = next(iter({*left.ids} ^ {*right.ids}), None)
        why = "their order differs" if alone is None else f"{alone} is on one side only"
        raise BridgeError(
            f"{pair.tier.unit} of {name!r}: the items of {pair.ours.folder} ({len(left.ids)}) are not those "
            f"of {pair.theirs.folder} ({len(right.ids)}): {why}; {AGAIN}"
        )
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
