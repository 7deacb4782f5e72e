"""Means of deltas over items and groups, and which of them decides an objective."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from evaluation.bridge.delta import GROUP, OVERALL, Delta
from evaluation.bridge.estimate import exponential, mean
from evaluation.bridge.pairing import AGAIN, Pair
from evaluation.errors import BridgeError
from evaluation.results.read import TierResults
from evaluation.settings.metric import Metric
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS


def means(pair: Pair, rows: Sequence[Delta]) -> Iterator[Delta]:
    """Yield the mean of each metric over all items, if all have it, and over groups that have all theirs.

    That of an exponential is the exponential of its base's mean.
    """
    tier, ours, theirs = pair.tier, pair.ours.file.groups, pair.theirs.file.groups
    groups = {name: weights for name, weights in ours.items() if theirs.get(name) == weights}
    headlines: dict[str, Delta] = {}
    for metric in tier.headline_first:
        own = {row.item: row for row in rows if row.metric == f"delta_{metric.name}"}
        for name, weights, offset in weights_of_means(pair.ours, metric, own, groups):
            whole = _mean([own[leaf] for leaf in weights], name, weights, offset)
            base = headlines.setdefault(name, whole)
            if metric.link == "exp" and base is not whole:
                values = [metric.linked(x) or math.inf for x in (base.value, base.bridge_value)]
                estimate = exponential(base.estimate, values[1])
                whole = replace(whole, value=values[0], bridge_value=values[1], estimate=estimate)
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
        is_mean=True,
        primary=False,
        is_secondary=is_secondary,
        p_holm=None,
        flag=None,
    )


def weights_of_means(
    results: TierResults,
    metric: Metric,
    items: Collection[str],
    groups: Mapping[str, Mapping[str, float]],
) -> Iterator[tuple[str, Mapping[str, float], float]]:
    """Yield each mean of a metric that `items` have: its name, its items' weights, and what is subtracted.

    The mean over all items is that of those whose kind has the metric. Centered groups, which have
    `offsets`, have a mean of accuracies alone, by the primary way of comparing candidates or by another.
    """
    tier, offsets, entries = results.tier, results.file.offsets, results.items.values()
    of_kind = [metric.name in tier.metrics_by(item.entry.kind) for item in entries]
    count = len(of_kind) if metric.numerator else sum(of_kind)
    if 0 < len(items) == count:
        yield OVERALL, dict.fromkeys(items, 1 / len(items)), 0.0
    is_accuracy = metric.name == tier.headline or metric.kind is not None
    for name, weights in groups.items() if count else ():
        if weights.keys() <= set(items) and (is_accuracy or name not in offsets):
            yield f"{name}{GROUP}", weights, offsets.get(name, 0.0)


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
        named = [delta for delta in own if group and delta.item == f"{group}{GROUP}"]
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
