"""Delta: one metric of one item on two sides; the mean of several, their correction, their rows."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evaluation.bridge.simultaneous_intervals import detectable
from evaluation.bridge.statistics import ALPHA, Estimate, holm, macro_mean
from evaluation.results.deltas_file import Flag
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, Tier, TierName, metric_of

OVERALL = "overall"

_GROUP = " (group)"


def group_item(group: str) -> str:
    """Return what rows call the mean of a group, as no slice or task is called.

    Args:
        group: Name of a group of the suite.

    Returns:
        For example `reading (group)`.
    """
    return f"{group}{_GROUP}"


def is_mean(tier: TierName, item: str) -> bool:
    """Return whether a row is of all items, or of a group of them.

    Args:
        tier: Tier of the row.
        item: What the row calls its item.

    Returns:
        False for a category of a tier of rates, which is an item itself.
    """
    return item == OVERALL or (item.endswith(_GROUP) and not TIERS[tier].rates)


@dataclass(frozen=True, kw_only=True)
class Delta:
    """One metric of one item: both values, and what is known of their difference.

    `primary` is of the family of tests; `is_secondary` stands next to another headline.
    """

    tier: TierName
    item: str
    group: str | None
    metric: str
    value: float
    bridge_value: float
    estimate: Estimate
    primary: bool
    is_secondary: bool = False
    p_holm: float | None = None
    flag: Flag | None = None

    @property
    def definition(self) -> Metric:
        """The metric that this is a delta of."""
        return metric_of(self.tier, self.metric)

    @property
    def want(self) -> Literal["<= 0", ">= 0"]:
        """The sign of a delta that is no loss."""
        return self.definition.want

    @property
    def sign(self) -> int:
        """1 if more is better, else -1."""
        return 1 if self.definition.higher_is_better else -1

    @property
    def gain(self) -> float:
        """The difference, positive where it is for the better."""
        return self.sign * self.estimate.value

    @property
    def is_mean(self) -> bool:
        """Whether it is of all items, or of a group of them."""
        return is_mean(self.tier, self.item)

    @property
    def key(self) -> str:
        """What it is called among the tests of a family."""
        return f"{self.tier} {self.item} {self.metric}"


def headline_delta(tier: TierName) -> str:
    """Return the name of the delta that objectives are decided on.

    Args:
        tier: Name of a tier.

    Returns:
        For example `delta_nats_per_token`.
    """
    return f"delta_{TIERS[tier].headline}"


def leading_deltas(tier: TierName) -> tuple[str, ...]:
    """Return the names of the deltas of the headline and of the first secondary metric.

    Args:
        tier: Name of a tier.

    Returns:
        One or two names, the headline's first.
    """
    return (headline_delta(tier), *(f"delta_{one.name}" for one in TIERS[tier].secondary[:1]))


def delta_of(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    values: tuple[float, float],
    estimate: Estimate,
    headline: str | None = None,
) -> Delta:
    """Return the delta of a metric, not corrected.

    Args:
        tier: Tier of the item.
        item: Slice, task, prompt category or `OVERALL`.
        group: Group of the item; None if it has none.
        metric: Name of the metric, without `delta_`.
        values: The value of our side and that of the bridge.
        estimate: Difference of the two.
        headline: Headline of the item, where it is not the tier's.

    Returns:
        The delta, which is primary for a headline of an item, or for a rate over all units.
    """
    is_overall, headline = item == OVERALL, headline or tier.headline
    return Delta(
        tier=tier.name,
        item=item,
        group=group,
        metric=f"delta_{metric}",
        value=values[0],
        bridge_value=values[1],
        estimate=estimate,
        primary=is_overall if tier.rates else metric == headline and not is_overall,
        is_secondary=tier.metric(metric).is_secondary and metric != headline,
    )


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


def corrected(deltas: Sequence[Delta]) -> list[Delta]:
    """Return deltas with flags, by Holm's correction over the primary ones.

    Args:
        deltas: Deltas of all tiers of one step, not corrected.

    Returns:
        The deltas in the same order; the MDE of primary ones is that of one of so many tests.
    """
    adjusted = holm({delta.key: delta.estimate.p for delta in deltas if delta.primary})
    tests = sum(p is not None for p in adjusted.values())
    return [flagged(_as_one_of(delta, tests), adjusted) for delta in deltas]


def _as_one_of(delta: Delta, tests: int) -> Delta:
    """Return a primary delta with its MDE as one of so many tests."""
    if not delta.primary or delta.estimate.p is None:
        return delta
    mde = detectable(delta.estimate, ALPHA / tests)
    return replace(delta, estimate=replace(delta.estimate, mde=mde))


def flagged(delta: Delta, adjusted: dict[str, float | None]) -> Delta:
    """Return a delta with its flag, if it is of the family of tests, or an overall value.

    Secondary metrics are of no family.

    Args:
        delta: A delta that is not corrected.
        adjusted: Holm's adjusted p-values by the keys of primary deltas.

    Returns:
        The delta with `p_holm` and `flag`, or the same one.
    """
    if delta.is_secondary:
        return delta
    is_nats = TIERS[delta.tier].kind == "nats" and not delta.primary
    tested = replace(delta, metric=headline_delta(delta.tier)) if is_nats else delta
    p_holm = adjusted.get(tested.key)
    if p_holm is None and not delta.is_mean:
        return delta
    p = p_holm if p_holm is not None else delta.estimate.p
    return replace(delta, p_holm=p_holm, flag=flag_of(delta.gain, p))


def flag_of(gain: float, p: float | None) -> Flag:
    """Return what a p-value shows of a gain.

    Args:
        gain: A difference, positive where it is for the better.
        p: Two-sided p-value of no difference; None if there is no test.

    Returns:
        `unclear` where p is not below ALPHA; else `better` or `worse`.
    """
    if p is None or p >= ALPHA:
        return "unclear"
    return "better" if gain > 0 else "worse"


def change_columns(values: tuple[float, float], estimate: Estimate) -> dict[str, Any]:
    """Return both values, their difference and its interval.

    Args:
        values: The value of our side and that of the bridge.
        estimate: Difference of the two.

    Returns:
        Numbers by column of `results.deltas_file.Change`.
    """
    return {
        "value": values[0],
        "bridge_value": values[1],
        "delta": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
    }


def delta_columns(delta: Delta) -> dict[str, Any]:
    """Return the columns of a delta that are the same whatever two checkpoints it is of.

    Args:
        delta: A corrected delta.

    Returns:
        Values by column, as `results.deltas_file` has them.
    """
    known = delta.estimate
    own = ("tier", "item", "group", "metric", "p_holm", "want", "primary", "flag")
    return {
        **change_columns((delta.value, delta.bridge_value), known),
        **{name: getattr(delta, name) for name in own},
        **{name: getattr(known, name) for name in ("p", "mde", "n", "method", "note")},
        "clusters": known.units,
    }
