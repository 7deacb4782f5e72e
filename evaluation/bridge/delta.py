"""A delta (one metric of one item on two sides), the correction of several, and their table rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.bridge.choice import holm
from evaluation.bridge.estimate import ALPHA, Estimate, detectable
from evaluation.results.deltas_file import Flag
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, Tier, TierName

OVERALL = "overall"

_GROUP = " (group)"


def group_item(group: str) -> str:
    """Return the item name of a group's mean, such as `reading (group)`, which no slice or task can have."""
    return f"{group}{_GROUP}"


def is_mean(tier: TierName, item: str) -> bool:
    """Return whether a row is of all items, or of a group of them; categories of rates are items."""
    return item == OVERALL or (item.endswith(_GROUP) and not TIERS[tier].rates)


@dataclass(frozen=True, kw_only=True)
class Delta:
    """One metric of one item: both values, and the estimate of their difference.

    `primary` deltas are in the family of tests; those that are `is_secondary` accompany a headline.
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
        return TIERS[self.tier].metric(self.metric)

    @property
    def sign(self) -> int:
        """1 if more is better, else -1."""
        return 1 if self.definition.higher_is_better else -1

    @property
    def gain(self) -> float:
        """The difference, positive where it is better."""
        return self.sign * self.estimate.value

    @property
    def is_mean(self) -> bool:
        """Whether it is of all items, or of a group of them."""
        return is_mean(self.tier, self.item)

    @property
    def columns(self) -> dict[str, Any]:
        """Its columns in `results.deltas_file`, without those that name the checkpoints."""
        own = ("tier", "item", "group", "metric", "p_holm", "primary", "flag")
        return {
            **change_columns((self.value, self.bridge_value), self.estimate),
            **{name: getattr(self, name) for name in own},
            **{name: getattr(self.estimate, name) for name in ("p", "mde", "n", "method", "note")},
            "clusters": self.estimate.units,
            "higher_is_better": self.definition.higher_is_better,
            **self._moves,
        }

    @property
    def _moves(self) -> dict[str, int]:
        """How many units gained credit, and how many lost some; empty where it is no credit of units."""
        paired = self.estimate.paired
        if paired is None or not paired.credit:
            return {}
        gains = self.sign * paired.judged.amounts
        return {"gained": int((gains > 0).sum()), "lost": int((gains < 0).sum())}


def headline_delta(tier: TierName) -> str:
    """Return the name of the delta that objectives are decided on, such as `delta_nats_per_token`."""
    return f"delta_{TIERS[tier].headline}"


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


def corrected(deltas: Sequence[Delta]) -> list[Delta]:
    """Return deltas with flags, by Holm's correction over the primary ones of all tiers, and over the groups.

    So is the MDE of tested ones. A loss in another unit has the flag of the headline, secondary ones none.
    """
    leading = {(delta.tier, delta.metric) for delta in deltas if delta.primary}
    tested_deltas = list(deltas)
    for is_family in (lambda d: d.primary, lambda d: _is_tested_group(d, leading)):
        family = [place for place, delta in enumerate(deltas) if is_family(delta)]
        p_values = holm({str(place): deltas[place].estimate.p for place in family})
        alpha = ALPHA / max(1, sum(p is not None for p in p_values.values()))
        for place in family:
            estimate, p_holm = tested_deltas[place].estimate, p_values[str(place)]
            if estimate.p is not None:
                estimate = replace(estimate, mde=detectable(estimate, alpha))
            tested_deltas[place] = replace(tested_deltas[place], estimate=estimate, p_holm=p_holm)
    tested = {(row.tier, row.item, row.metric): row.p_holm for row in tested_deltas}
    return [_flagged(delta, tested.get(_hypothesis(delta))) for delta in tested_deltas]


def _hypothesis(delta: Delta) -> tuple[TierName, str, str]:
    is_loss = TIERS[delta.tier].kind == "nats" and delta.p_holm is None
    return delta.tier, delta.item, headline_delta(delta.tier) if is_loss else delta.metric


def _is_tested_group(delta: Delta, leading: set[tuple[TierName, str]]) -> bool:
    """Whether it is a group's mean of a leading metric: these are tested together, apart from items."""
    if not delta.is_mean or delta.item == OVERALL or delta.is_secondary:
        return False
    return TIERS[delta.tier].kind == "credit" or (delta.tier, delta.metric) in leading


def _flagged(delta: Delta, p_holm: float | None) -> Delta:
    if delta.is_secondary or (p_holm is None and not delta.is_mean):
        return delta
    p = p_holm if p_holm is not None else delta.estimate.p
    return replace(delta, p_holm=p_holm, flag=flag_of(delta.gain, p))


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
