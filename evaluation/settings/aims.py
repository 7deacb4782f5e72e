"""What a stage is for: the aims of its objective."""

from typing import Literal, Self

from pydantic import Field, model_validator

from evaluation.settings.model import Fraction, Integer, Settings
from evaluation.settings.names import Label
from evaluation.settings.tiers import TIERS, Metric, TierName
from evaluation.wording import did_you_mean

SMALLEST_MARGIN = 1e-6
"""Above zero: the number of questions that would show it goes with its square."""


class Aim(Settings):
    """One thing a stage is for: to improve on the bridge, or to keep what it had."""

    tier: TierName = Field(description="Tier of the objective.")
    want: Literal["improve", "keep"] = Field(
        description="`improve`: gain on the bridge; `keep`: lose no more than the margin."
    )
    group: Label | None = Field(None, description="Only slices or tasks of this group.")
    metric: str | None = Field(
        None,
        description="Metric that decides it, if not the tier's headline: for tier3 `gold_bits_per_byte`, `correct_probability`, `margin` or `greedy`.",
    )
    margin: Fraction = Field(
        ge=0,
        le=1000,
        description="Smallest gain that counts (`improve`) or largest loss allowed (`keep`): "
        "nats per token for tier2, a fraction for tier3 and tier4, the unit of `metric`.",
    )
    average: Integer | None = Field(
        None,
        ge=3,
        le=1000,
        description="Also report the mean of this many last checkpoints (3 or more).",
    )

    @model_validator(mode="after")
    def _metric_is_known(self) -> Self:
        tier = TIERS[self.tier]
        known = [tier.headline, *(metric.name for metric in tier.companions), *tier.unranked]
        known = list(dict.fromkeys(known))
        if self.metric is not None and self.metric not in known:
            hint = did_you_mean(self.metric, known)
            raise ValueError(
                f"metric: {self.tier} cannot be aimed at by {self.metric!r}{hint}; there "
                f"{'is' if len(known) == 1 else 'are'} {', '.join(known)}"
            )
        return self

    @model_validator(mode="after")
    def _margin_can_be_seen(self) -> Self:
        if 0 < self.margin < SMALLEST_MARGIN:
            raise ValueError(
                f"margin: {self.margin:g} is less than any results could show; write 0, or "
                f"{SMALLEST_MARGIN:g} or more"
            )
        return self

    @property
    def decided_on(self) -> Metric:
        """Return the metric that decides it."""
        tier = TIERS[self.tier]
        return tier.metric(self.metric or tier.headline)
