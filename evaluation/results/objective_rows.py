"""Rows of verdicts on an objective, with what limits, refines or confirms them."""

from typing import Literal

from pydantic import Field

from evaluation.results.delta_rows import Change, Mde, TierOf
from evaluation.results.files import FileModel, optional
from evaluation.settings.metric import Metric
from evaluation.settings.objectives import aim_in_words, objective_in_words
from evaluation.settings.tiers import TIERS

ObjectiveVerdict = Literal["met", "not met", "undecided"]


class SecondaryRow(FileModel):
    """The result of a secondary metric where an objective is undecided."""

    metric: str = Field(description="`delta_` and the name of the metric.")
    shows: Literal["better", "worse", "undecided"] = Field(
        description="What its interval alone shows."
    )
    delta: float = Field(description="Over the objective's items.")
    low: float = Field(description="Lower end of its 95 % interval.")
    high: float = Field(description="Upper end of that interval.")
    sentence: str = Field(description="The same in words.")


class RecipeRow(FileModel):
    """An objective's delta as a difference of recipes: its interval includes the noise of checkpoints."""

    low: float = Field(description="Lower end of the interval.")
    high: float = Field(description="Upper end of that interval.")
    se_checkpoints: float = Field(description="Standard error from the choice of checkpoints.")
    share_checkpoints: float | None = optional(
        "Share of the squared width that checkpoints add to the interval of the same level over questions."
    )
    checkpoints: int = Field(description="Last checkpoints that the noise was estimated from.")
    bridge_checkpoints: int | None = optional(
        "Last checkpoints of the bridge's own stage that its noise was read from; null if it is assumed equal."
    )
    verdict: ObjectiveVerdict = Field(description="Verdict on the objective by this interval.")
    sentence: str = Field(description="The same in words.")


class NoiseRow(FileModel):
    """How much an item's headline varies between the last checkpoints of a stage, in standard deviations."""

    tier: TierOf
    item: str = Field(description="Slice, task or category.")
    metric: str = Field(description="Its headline.")
    checkpoints: int = Field(description="Last checkpoints.")
    level: float = Field(description="Of the level; a trend counts as variation.")
    flicker: float = Field(description="Of the mean, from the flicker of single answers.")


class ObjectiveRow(Change):
    """The verdict on a step by one objective of its stage."""

    want: Literal["improve", "keep"] = Field(description="`improve`, or `keep`.")
    group: str | None = Field(description="Group of items of the objective; null for all.")
    margin: float = Field(description="Smallest gain, or largest loss, that counts.")
    verdict: ObjectiveVerdict = Field(description="`met`, `not met` or `undecided`.")
    metric: str = Field(description="Metric that decides it.")
    items: tuple[str, ...] = Field(description="Its slices, tasks or categories.")
    mde: Mde
    regressions: tuple[str, ...] = Field(description="Items that are significantly worse.")
    why: str = Field(description="The verdict's reason in words.")
    secondary: SecondaryRow | None = optional("A secondary metric, if the objective is undecided.")
    shares: dict[str, float] = optional("Each item's share of the variance of their mean.", {})
    limited_by: str | None = optional(
        "What limits an undecided mean: the item with the largest share, and what would be detectable otherwise."
    )
    needed_times: float | None = optional(
        "How many times as many units would show the margin, or else the smallest difference that matters."
    )
    recipe: RecipeRow | None = optional(
        "The delta with the noise of checkpoints; in a stage's files, of three checkpoints or more."
    )

    @property
    def definition(self) -> Metric:
        """The metric that decides it."""
        return TIERS[self.tier].metric(self.metric)

    @property
    def gain(self) -> float:
        """The difference, positive where it is better."""
        return self.delta if self.definition.higher_is_better else -self.delta

    @property
    def in_words(self) -> str:
        """The metric that decides it, with the tier's title and its group."""
        return objective_in_words(self.tier, self.definition, self.group)

    @property
    def aim(self) -> str:
        """What is wanted of the metric."""
        return aim_in_words(self.want, self.margin, self.definition)
