"""Means of deltas over items and groups, and which of them decides an objective."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from evaluation.bridge.delta import OVERALL, Delta, group_item
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.pairing import AGAIN
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.errors import BridgeError
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS


def _macro(rows: Sequence[Delta], item: str, weights: Mapping[str, float] | None = None) -> Delta:
    """Return the mean of one metric over items, which is not primary; without weights all weigh the same."""
    weights = weights or {row.item: 1 / len(rows) for row in rows}
    return replace(
        rows[0],
        item=item,
        group=None,
        value=math.fsum(weights[row.item] * row.value for row in rows),
        bridge_value=math.fsum(weights[row.item] * row.bridge_value for row in rows),
        estimate=macro_mean({row.item: row.estimate for row in rows}, weights=weights),
        primary=False,
        is_secondary=_is_decided_by_another(rows),
        p_holm=None,
        flag=None,
    )


def _is_decided_by_another(rows: Sequence[Delta]) -> bool:
    """Whether another metric decides on these items, as bits per byte do on those of `greedy`."""
    if any(row.is_secondary for row in rows):
        return True
    return TIERS[rows[0].tier].kind != "nats" and not any(row.primary for row in rows)


def means(
    rows: Sequence[Delta], count: int, groups: Mapping[str, Mapping[str, float]]
) -> Iterator[Delta]:
    """Yield the mean of one metric over all items, then those of groups that have all their items.

    Args:
        rows: Deltas of the metric, one for each item.
        count: Number of all items; with fewer rows, there is no mean over all.
    """
    by_item = {row.item: row for row in rows}
    for name, weights in weights_of_means(by_item, count, groups):
        yield _macro([by_item[leaf] for leaf in weights], name, weights)


def weights_of_means(
    items: Collection[str], count: int, groups: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the name of each mean over all items or a group, and the weight of each of its items.

    Args:
        items: Names of the items that have a value.
        count: Number of all items; if some have no value, there is no mean over all.
    """
    if 0 < len(items) == count:
        yield OVERALL, dict.fromkeys(items, 1 / len(items))
    for name, weights in groups.items():
        if weights.keys() <= set(items):
            yield group_item(name), weights


def decisive_deltas(
    objective: Objective, deltas: Sequence[Delta], key: str
) -> tuple[list[Delta], Delta]:
    """Return the deltas of an objective's items, and the one it is decided on, which may be their mean.

    Args:
        key: Place of the objective in the configuration, for messages.

    Raises:
        BridgeError: Nothing of the objective was scored.
    """
    parts, headline = find_deltas(objective, deltas)
    if headline is None:
        tier, metric = objective.tier, objective.metric
        place = f"{tier} of the group {objective.group!r}" if objective.group else tier
        if metric is not None and find_deltas(objective, deltas, TIERS[tier].headline)[1]:
            raise BridgeError(
                f"{key}: it is on {metric} of {place}, which not both sides have; score both sides with "
                "per-item tables, or leave `metric` out"
            )
        raise BridgeError(
            f"{key}: it is on {place}, of which the two sides have no item in common, or weigh the "
            f"items differently; run the workflow to its end; if that does not help, {AGAIN}"
        )
    return parts, headline


def find_deltas(
    objective: Objective, deltas: Sequence[Delta], metric: str | None = None
) -> tuple[list[Delta], Delta | None]:
    """Return the deltas of an objective's items and their mean; for a tier of rates, its rate instead.

    `metric` takes the place of the metric that decides the objective.
    """
    group, item = objective.group, objective.group or OVERALL
    name = f"delta_{metric or objective.decided_on.name}"
    candidates = [delta for delta in deltas if delta.tier == objective.tier]
    if TIERS[objective.tier].rates:
        candidates = [delta for delta in candidates if delta.item == item]
        return candidates, next((delta for delta in candidates if delta.metric == name), None)
    candidates = [delta for delta in candidates if delta.metric == name]
    items = [delta for delta in candidates if not delta.is_mean]
    mean = next((delta for delta in candidates if group and delta.item == group_item(group)), None)
    if mean is not None:  # a group of the suite
        parts = [delta for delta in items if delta.item in mean.estimate.weights]
        return parts, replace(mean, item=item)
    candidates = [delta for delta in items if group in (None, delta.group)]
    return candidates, _macro(candidates, item) if candidates else None


def gain_interval(sign: int, estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of the gain, positive where it is better; None without interval.

    Args:
        sign: 1 if more of the metric is better, else -1.
    """
    if estimate.low is None or estimate.high is None:
        return None, None
    return (estimate.low, estimate.high) if sign > 0 else (-estimate.high, -estimate.low)
