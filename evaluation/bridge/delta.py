"""Delta: one metric of one item on two sides; the mean of several, their correction, their rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evaluation.bridge.simultaneous_intervals import detectable
from evaluation.bridge.statistics import ALPHA, Estimate, holm, macro_mean
from evaluation.results.deltas_file import Flag
from evaluation.settings.tiers import TIERS, Metric, Tier, TierName

OVERALL = "overall"


@dataclass(frozen=True, kw_only=True)
class Delta:
    """One metric of one item: both values, and what is known of their difference."""

    tier: TierName
    item: str
    group: str | None
    metric: str
    value: float
    bridge_value: float
    estimate: Estimate
    want: Literal["<= 0", ">= 0"]
    primary: bool
    p_holm: float | None = None
    flag: Flag | None = None

    @property
    def definition(self) -> Metric:
        """The metric that this is a delta of."""
        return metric_of(self.tier, self.metric)

    @property
    def sign(self) -> int:
        """1 if more is better, else -1."""
        return 1 if self.want == ">= 0" else -1

    @property
    def gain(self) -> float:
        """The difference, positive where it is for the better."""
        return self.sign * self.estimate.value

    @property
    def key(self) -> str:
        """What it is called among the tests of a family."""
        return f"{self.tier} {self.item} {self.metric}"


def metric_of(tier: TierName, delta: str) -> Metric:
    """Return the metric that the deltas of this name are of."""
    return TIERS[tier].metric(delta.removeprefix("delta_"))


def headline_delta(tier: TierName) -> str:
    """Return the name of the delta that objectives are decided on."""
    return f"delta_{TIERS[tier].headline}"


def leading_deltas(tier: TierName) -> tuple[str, ...]:
    """Return the names of the headline's deltas and those of the first secondary metric."""
    return (headline_delta(tier), *(f"delta_{one.name}" for one in TIERS[tier].companions[:1]))


def delta_of(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    values: tuple[float, float],
    estimate: Estimate,
) -> Delta:
    """Return the delta of a metric, given the values of both sides."""
    is_overall = item == OVERALL
    return Delta(
        tier=tier.name,
        item=item,
        group=group,
        metric=f"delta_{metric}",
        value=values[0],
        bridge_value=values[1],
        estimate=estimate,
        want=tier.metric(metric).want,
        primary=is_overall if tier.rates else metric == tier.headline and not is_overall,
    )


def macro(rows: Sequence[Delta], item: str = OVERALL) -> Delta:
    """Return the unweighted mean of one metric over items."""
    return replace(
        rows[0],
        item=item,
        group=None,
        value=math.fsum(row.value for row in rows) / len(rows),
        bridge_value=math.fsum(row.bridge_value for row in rows) / len(rows),
        estimate=macro_mean({row.item: row.estimate for row in rows}),
        primary=False,
        p_holm=None,
        flag=None,
    )


def corrected(deltas: Sequence[Delta]) -> list[Delta]:
    """Return the deltas with flags, by Holm's correction over the primary ones."""
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
    """
    if delta.definition.companion:
        return delta
    is_nats = TIERS[delta.tier].kind == "nats" and not delta.primary
    tested = replace(delta, metric=headline_delta(delta.tier)) if is_nats else delta
    p_holm = adjusted.get(tested.key)
    if p_holm is None and delta.item != OVERALL:
        return delta
    p = p_holm if p_holm is not None else delta.estimate.p
    return replace(delta, p_holm=p_holm, flag=flag_of(delta.gain, p))


def flag_of(gain: float, p: float | None) -> Flag:
    """Return what a p-value tells of a gain."""
    if p is None or p >= ALPHA:
        return "unclear"
    return "better" if gain > 0 else "worse"


def delta_row(delta: Delta, stage: str, step: int | None, bridge: str) -> dict[str, Any]:
    """Return a delta as `results.deltas_file.DeltaRow` has it."""
    return {"stage": stage, "step": step, "bridge": bridge, **delta_columns(delta)}


def delta_columns(delta: Delta) -> dict[str, Any]:
    """Return the columns of a delta that are the same whatever two checkpoints it is of."""
    estimate = delta.estimate
    return {
        "tier": delta.tier,
        "item": delta.item,
        "group": delta.group,
        "metric": delta.metric,
        "value": delta.value,
        "bridge_value": delta.bridge_value,
        "delta": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p": estimate.p,
        "p_holm": delta.p_holm,
        "mde": estimate.mde,
        "n": estimate.n,
        "clusters": estimate.units,
        "want": delta.want,
        "primary": delta.primary,
        "flag": delta.flag,
        "method": estimate.method,
        "note": estimate.note,
    }
