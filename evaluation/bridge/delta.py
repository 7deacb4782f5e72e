"""A delta (one metric of one item on two sides), the correction of several, and their table rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.bridge.choice import holm
from evaluation.bridge.estimate import ALPHA, Estimate, detectable
from evaluation.results.deltas_file import Flag
from evaluation.settings.tiers import TIERS, Tier, TierName

OVERALL = "overall"

GROUP = " (group)"
"""Ends the item name of a group's mean, such as `reading (group)`, which no slice or task can have."""


def is_mean(tier: TierName, item: str) -> bool:
    """Return whether a row is of all items, or of a group of them; categories of rates are items."""
    return item == OVERALL or (item.endswith(GROUP) and not TIERS[tier].rates)


@dataclass(frozen=True, kw_only=True)
class Delta:
    """One metric of one item: both values, and the estimate of their difference.

    `sign` is 1 if more is better, else -1. `primary` deltas are in the family of tests; those that are
    `is_secondary` accompany a headline; `is_mean` marks those of all items, or of a group of them.
    """

    tier: TierName
    item: str
    group: str | None
    metric: str
    value: float
    bridge_value: float
    estimate: Estimate
    sign: int
    primary: bool
    is_secondary: bool = False
    is_mean: bool = False
    p_holm: float | None = None
    flag: Flag | None = None

    @property
    def gain(self) -> float:
        """The difference, positive where it is better."""
        return self.sign * self.estimate.value

    @property
    def columns(self) -> dict[str, Any]:
        """Its columns in `results.deltas_file`, without those that name the checkpoints."""
        own = ("tier", "item", "group", "metric", "p_holm", "primary", "flag")
        columns = {
            **change_columns((self.value, self.bridge_value), self.estimate),
            **{name: getattr(self, name) for name in own},
            **{name: getattr(self.estimate, name) for name in ("p", "mde", "n", "method", "note")},
            "clusters": self.estimate.units,
            "higher_is_better": self.sign > 0,
        }
        paired = self.estimate.paired
        if paired is not None and paired.credit:
            gains = self.sign * paired.judged.amounts
            columns |= {"gained": int((gains > 0).sum()), "lost": int((gains < 0).sum())}
        return columns


def delta_of(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    values: tuple[float, float],
    estimate: Estimate,
    headline: str | None = None,
) -> Delta:
    """Return the uncorrected delta of a metric; a headline of an item or a rate of all units is primary."""
    is_overall, headline, about = item == OVERALL, headline or tier.headline, tier.metric(metric)
    return Delta(
        tier=tier.name,
        item=item,
        group=group,
        metric=f"delta_{metric}",
        value=values[0],
        bridge_value=values[1],
        estimate=estimate,
        sign=1 if about.higher_is_better else -1,
        primary=is_overall if tier.rates else metric == headline and not is_overall,
        is_secondary=about.is_secondary and metric != headline,
        is_mean=is_overall,
    )


def corrected(deltas: Sequence[Delta]) -> list[Delta]:
    """Return deltas with flags, by Holm's correction over the primary ones of all tiers, and over the groups.

    The means of groups of a leading metric are tested together, apart from items. The MDE of tested deltas
    is corrected, too.
    """
    leading = {(delta.tier, delta.metric) for delta in deltas if delta.primary}
    items, groups = list[int](), list[int]()
    for place, delta in enumerate(deltas):
        is_leading = TIERS[delta.tier].kind == "credit" or (delta.tier, delta.metric) in leading
        if delta.primary:
            items.append(place)
        elif delta.is_mean and delta.item != OVERALL and is_leading and not delta.is_secondary:
            groups.append(place)
    tested = list(deltas)
    for family in (items, groups):
        p_values = holm([deltas[place].estimate.p for place in family])
        alpha = ALPHA / max(1, sum(p is not None for p in p_values))
        for place, p in zip(family, p_values, strict=True):
            estimate = deltas[place].estimate
            if p is not None:
                estimate = replace(estimate, mde=detectable(estimate, alpha))
            tested[place] = replace(deltas[place], estimate=estimate, p_holm=p)
    p_holm = {(delta.tier, delta.item, delta.metric): delta.p_holm for delta in tested}
    return [_flagged(delta, p_holm) for delta in tested]


def _flagged(delta: Delta, p_holm: Mapping[tuple[TierName, str, str], float | None]) -> Delta:
    """Return a delta with its flag; a loss in another unit has the headline's, secondary ones have none."""
    tier, metric = TIERS[delta.tier], delta.metric
    if tier.kind == "nats" and delta.p_holm is None:
        metric = f"delta_{tier.headline}"
    p = p_holm.get((delta.tier, delta.item, metric))
    if delta.is_secondary or (p is None and not delta.is_mean):
        return delta
    flag = flag_of(delta.gain, delta.estimate.p if p is None else p)
    return replace(delta, p_holm=p, flag=flag)


def flag_of(gain: float, p: float | None) -> Flag:
    """Return the flag of a gain by its two-sided p-value: `unclear` from ALPHA on, or without test."""
    if p is None or p >= ALPHA:
        return "unclear"
    return "better" if gain > 0 else "worse"


def change_columns(values: tuple[float, float], estimate: Estimate) -> dict[str, Any]:
    """Return our value, the bridge's, and their difference by column of `results.deltas_file.Change`."""
    return {
        "value": values[0],
        "bridge_value": values[1],
        "delta": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
    }
