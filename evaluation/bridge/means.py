"""Means of deltas: macro averages, groups, and means over several tiers."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from evaluation.bridge.delta import OVERALL, Delta, group_item
from evaluation.bridge.statistics import macro_mean
from evaluation.settings.tiers import TIERS, Tier


def macro(rows: Sequence[Delta], item: str, weights: Mapping[str, float] | None = None) -> Delta:
    """Return the mean of one metric over items.

    Args:
        rows: Deltas of the metric, one for each item; at least one.
        item: What the mean is called.
        weights: Weight of each item, which add up to 1; None weighs all alike.

    Returns:
        A delta that is not primary and has no flag.
    """
    weights = weights or {row.item: 1 / len(rows) for row in rows}
    return replace(
        rows[0],
        item=item,
        group=None,
        value=math.fsum(weights[row.item] * row.value for row in rows),
        bridge_value=math.fsum(weights[row.item] * row.bridge_value for row in rows),
        estimate=macro_mean({row.item: row.estimate for row in rows}, weights=weights),
        primary=False,
        is_secondary=_stand_next_to_another(rows),
        p_holm=None,
        flag=None,
    )


def _stand_next_to_another(rows: Sequence[Delta]) -> bool:
    """Whether another metric decides on these items: `greedy` is decided by their bits per byte."""
    if any(row.is_secondary for row in rows):
        return True
    return TIERS[rows[0].tier].kind != "nats" and not any(row.primary for row in rows)


def counted_deltas(deltas: Sequence[Delta]) -> dict[str, Delta]:
    """Return the delta of each item that a mean over several tiers counts.

    That is the headline's, or of items of which only the right answer is scored the greedy rate's.

    Args:
        deltas: Deltas of several tiers.

    Returns:
        Deltas by the item's name.
    """
    found: dict[str, Delta] = {}
    for delta in deltas:
        tier = TIERS[delta.tier]
        counted = [f"delta_{name}" for name in (() if tier.rates else tier.counted)]
        if delta.is_mean or delta.metric not in counted:
            continue
        if delta.item not in found or delta.metric == counted[0]:
            found[delta.item] = delta
    return found


def means(
    rows: Sequence[Delta], count: int, groups: Mapping[str, Mapping[str, float]]
) -> Iterator[Delta]:
    """Yield the means of one metric over all items and over groups.

    Args:
        rows: Deltas of the metric, one for each item.
        count: Items that there are in all; with fewer, there is no mean over all.
        groups: Weights of the items of each group.

    Yields:
        The mean over all items, then those of groups that have all their items.
    """
    known = {row.item: row for row in rows}
    for name, weights in weights_of_means(known, count, groups):
        yield macro([known[leaf] for leaf in weights], name, weights)


def means_over_tiers(
    tier: Tier,
    items: Collection[str],
    groups: Mapping[str, Mapping[str, float]],
    found: Sequence[Delta],
) -> Iterator[Delta]:
    """Yield the means of a tier's groups that hold items of earlier tiers, too.

    Args:
        tier: The tier of the groups, whose headline the means are shown under.
        items: Names of this tier's items.
        groups: Weights of items in each group of this tier.
        found: Deltas of this tier and of those before it.

    Yields:
        A delta for each such group, in order.
    """
    counted = counted_deltas(found)
    for name, weights in groups.items():
        if weights.keys() <= set(items) or not weights.keys() <= counted.keys():
            continue
        rows = [counted[leaf] for leaf in weights]
        mean = macro(rows, group_item(name), weights)
        tiers = [one for one in TIERS if one in {row.tier for row in rows}]
        note = mean.estimate.note or f"a mean over tasks of {' and '.join(tiers)}"
        yield replace(
            mean,
            tier=tier.name,
            metric=f"delta_{tier.headline}",
            estimate=replace(mean.estimate, note=note),
            is_secondary=False,
        )


def weights_of_means(
    items: Collection[str], count: int, groups: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield what items weigh in the means over all items and over groups.

    Args:
        items: Names of the items that have a value.
        count: Items that there are in all; with fewer, there is no mean over all.
        groups: Weights of the items of each group.

    Yields:
        The name of the mean, and the weight of each of its items.
    """
    if 0 < len(items) == count:
        yield OVERALL, dict.fromkeys(items, 1 / len(items))
    for name, weights in groups.items():
        if weights.keys() <= set(items):
            yield group_item(name), weights
