"""Means of deltas over items and groups, and which of them decides an objective."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from evaluation.bridge.delta import OVERALL, Delta, group_item
from evaluation.bridge.estimate import Estimate, exponential, mean
from evaluation.bridge.pairing import AGAIN, Pair
from evaluation.errors import BridgeError
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS


def means(pair: Pair, rows: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean of each metric over all items, if all have it, and over groups that have all theirs.

    That of an exponential is the exponential of its base's mean.
    """
    tier = pair.tier
    kinds = [tier.metrics_of(mine.values) for _, mine, _ in pair.both]
    wholes: dict[tuple[str, str], Delta] = {}
    for metric in (
        m for m in tier.headline_first if m.numerator or any(m.name in k for k in kinds)
    ):
        own = {row.item: row for row in rows if row.metric == f"delta_{metric.name}"}
        count = len(pair.ours.items) if metric.numerator else sum(metric.name in k for k in kinds)
        wholes_of = weights_of_means(
            own, count, pair.groups, pair.offsets, is_accuracy=tier.is_accuracy(metric)
        )
        for name, weights, offset in wholes_of:
            whole = _mean([own[leaf] for leaf in weights], name, weights, offset)
            base = wholes.get((tier.base_of(metric).name, name))
            if metric.link == "exp" and base is not None:
                values = [metric.linked(x) or math.inf for x in (base.value, base.bridge_value)]
                estimate = exponential(base.estimate, values[1])
                whole = replace(whole, value=values[0], bridge_value=values[1], estimate=estimate)
            wholes[metric.name, name] = whole
            yield whole


def _mean(
    rows: Sequence[Delta],
    item: str,
    weights: Mapping[str, float] | None = None,
    offset: float = 0.0,
) -> Delta:
    """Return the mean of one metric over items, which is not primary; without weights all weigh the same."""
    weights = weights or {row.item: 1 / len(rows) for row in rows}
    is_secondary = any(row.is_secondary for row in rows)  # or another metric decides on these items
    if TIERS[rows[0].tier].kind != "nats":
        is_secondary |= not any(row.primary for row in rows)
    return replace(
        rows[0],
        item=item,
        group=None,
        value=math.fsum(weights[row.item] * row.value for row in rows) - offset,
        bridge_value=math.fsum(weights[row.item] * row.bridge_value for row in rows) - offset,
        estimate=mean({row.item: row.estimate for row in rows}, weights),
        primary=False,
        is_secondary=is_secondary,
        p_holm=None,
        flag=None,
    )


def weights_of_means(
    items: Collection[str],
    count: int,
    groups: Mapping[str, Mapping[str, float]],
    offsets: Mapping[str, float],
    *,
    is_accuracy: bool,
) -> Iterator[tuple[str, Mapping[str, float], float]]:
    """Yield each mean over all items or a group: its name, its items' weights, and what is subtracted.

    Centered groups, which have `offsets`, have a mean of accuracies alone.
    """
    if 0 < len(items) == count:
        yield OVERALL, dict.fromkeys(items, 1 / len(items)), 0.0
    for name, weights in groups.items():
        if weights.keys() <= set(items) and (is_accuracy or name not in offsets):
            yield group_item(name), weights, offsets.get(name, 0.0)


def decisive_deltas(
    objective: Objective, deltas: Sequence[Delta], key: str
) -> tuple[list[Delta], Delta]:
    """Return the deltas of an objective's items, and what decides, a mean or rate; raise BridgeError."""
    group, item = objective.group, objective.group or OVERALL
    name = f"delta_{objective.decided_on.name}"
    of_tier = [delta for delta in deltas if delta.tier == objective.tier]
    own = [delta for delta in of_tier if delta.metric == name]
    if TIERS[objective.tier].rates:
        whole = next((delta for delta in own if delta.item == item), None)
        if whole is not None:
            return [delta for delta in of_tier if delta.item == item], whole
    else:
        parts = [delta for delta in own if not delta.is_mean]
        named = [delta for delta in own if group and delta.item == group_item(group)]
        if named:  # a group of the suite
            members = named[0].estimate.weights
            return [row for row in parts if row.item in members], replace(named[0], item=item)
        parts = [delta for delta in parts if group in (None, delta.group)]
        if parts:
            return parts, _mean(parts, item)
    place = f"{objective.tier} of the group {group!r}" if group else objective.tier
    if objective.metric is not None and of_tier:
        raise BridgeError(
            f"{key}: it is on {objective.metric} of {place}, which not both sides have; score both sides "
            "with per-item tables, or leave `metric` out"
        )
    raise BridgeError(
        f"{key}: it is on {place}, of which the two sides have no item in common, or weigh the "
        f"items differently; run the workflow to its end; if that does not help, {AGAIN}"
    )


def gain_interval(sign: int, estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of the gain, positive where it is better; None without interval."""
    if estimate.low is None or estimate.high is None:
        return None, None
    return (estimate.low, estimate.high) if sign > 0 else (-estimate.high, -estimate.low)
