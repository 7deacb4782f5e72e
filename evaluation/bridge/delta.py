"""One metric of one item on two sides, and the mean of several."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from evaluation.bridge.pairing import check_ids
from evaluation.bridge.statistics import Estimate, macro_mean, unknown
from evaluation.results.bridge_rows import Flag
from evaluation.results.read import TierResults
from evaluation.settings.tiers import TIERS, Tier, TierName

OVERALL = "overall"
NO_TABLE = "no interval: an external command gave no per-item scores"


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
    def is_companion(self) -> bool:
        """Whether it stands beside the headline, and so has an interval but no flag."""
        return TIERS[self.tier].metric(self.metric.removeprefix("delta_")).companion

    @property
    def sign(self) -> int:
        """1 if more is better."""
        return 1 if self.want == ">= 0" else -1


@dataclass(frozen=True)
class Pair:
    """A tier of both sides."""

    ours: TierResults
    theirs: TierResults

    @property
    def tier(self) -> Tier:
        return self.ours.tier

    def check(self, what: str, mine: list[object], other: list[object]) -> None:
        """Raises BridgeError unless both sides have the same units."""
        folders = self.ours.folder, self.theirs.folder
        check_ids(f"{self.tier.unit} of {what!r}", mine, other, *folders)


def headline_delta(tier: TierName) -> str:
    """The delta that objectives are decided on."""
    return f"delta_{TIERS[tier].headline}"


def no_table(values: tuple[float, float]) -> Estimate:
    return unknown(values[0] - values[1], n=0, units=0, note=NO_TABLE)


def delta_of(
    tier: Tier,
    item: str,
    group: str | None,
    metric: str,
    values: tuple[float, float],
    estimate: Estimate,
) -> Delta:
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


def macro(rows: list[Delta], item: str = OVERALL) -> Delta:
    """The unweighted mean of one metric over items."""
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
