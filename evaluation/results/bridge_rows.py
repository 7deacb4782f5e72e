"""The rows of the bridge's files: of deltas, of aims, of groups of prompts, and of a stage's tables."""

from typing import Annotated, Literal

from pydantic import Field

from evaluation.results.columns import columns_of
from evaluation.results.files import FileModel
from evaluation.settings.tiers import TIERS, TierName

Flag = Literal["better", "worse", "unclear"]
Answer = Literal["met", "not met", "undecided"]

TierOf = Annotated[TierName, Field(description="Name of the tier.")]
Group = Annotated[str | None, Field(description="Group that objectives refer to.")]
DeltaMetric = Annotated[str, Field(description="`delta_` and the name of the metric.")]
StepValue = Annotated[float, Field(description="The step's value.")]
BridgeValue = Annotated[float, Field(description="The bridge's value.")]
Low = Annotated[float | None, Field(description="Lower end of the 95 % interval of the delta.")]
High = Annotated[float | None, Field(description="Upper end of it.")]
P = Annotated[float | None, Field(description="Two-sided p-value of no difference.")]
Mde = Annotated[float | None, Field(description="Minimum detectable effect (MDE) of the test.")]
Items = Annotated[int, Field(description="Blocks, questions or prompts.")]
Units = Annotated[int, Field(description="Independent units among them: items, or clusters.")]
Method = Annotated[str, Field(description="How interval and p-value were computed.")]
Note = Annotated[str | None, Field(description="Why something is not known.")]
"""Columns that rows of several files share."""


class DeltaRow(FileModel):
    """A delta of one metric of one item. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint.")
    bridge: str = Field(description="The bridge, by the last two folders of its path.")
    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: Group
    metric: DeltaMetric
    value: StepValue
    bridge_value: BridgeValue
    delta: float = Field(description="`value` minus `bridge_value`.")
    low: Low
    high: High
    p: P
    p_holm: float | None = Field(description="The same, corrected over the primary deltas.")
    mde: Mde
    n: Items
    clusters: Units
    want: Literal["<= 0", ">= 0"] = Field(description="Sign of a delta that is no loss.")
    primary: bool = Field(description="Whether the step's correction is over it.")
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")
    method: Method
    note: Note


class CompanionRow(FileModel):
    """What stands beside an aim that is undecided."""

    metric: DeltaMetric
    says: Literal["better", "worse", "undecided"] = Field(
        description="`better`, `worse` or `unclear`, by its interval alone."
    )
    delta: float = Field(
        description="The step's value minus the bridge's, over the objective's items."
    )
    low: float = Field(description="Lower end of its 95 % interval.")
    high: float = Field(description="Upper end of it.")
    sentence: str = Field(description="The same in words.")


class AimRow(FileModel):
    """How a step stands to one aim of its objective."""

    tier: TierName = Field(description="Tier of the objective.")
    want: Literal["improve", "keep"] = Field(description="`improve`, or `keep`.")
    group: str | None = Field(description="Group of items of the objective; null for all.")
    margin: float = Field(description="Smallest gain, or largest loss, that counts.")
    verdict: Answer = Field(description="`met`, `not met` or `undecided`.")
    metric: str = Field(description="Metric that decides it.")
    items: tuple[str, ...] = Field(description="Its slices, tasks or categories.")
    value: StepValue
    bridge_value: BridgeValue
    delta: float = Field(description="Their difference.")
    low: Low
    high: High
    mde: Mde
    regressions: tuple[str, ...] = Field(description="Items that are significantly worse.")
    why: str = Field(description="The verdict's reason in words.")
    companion: CompanionRow | None = Field(
        None, description="A secondary metric, if the objective is undecided."
    )

    @property
    def gain(self) -> float:
        """The difference, positive where it is for the better."""
        metric = TIERS[self.tier].metric(self.metric.removeprefix("delta_"))
        return self.delta if metric.higher_is_better else -self.delta

    @property
    def label(self) -> str:
        """What sentences call the aim."""
        return f"{self.tier}{f' {self.group}' if self.group else ''} {self.want}s"


class GroupDelta(FileModel):
    """The headline's delta among the prompts of a fixed group, such as a level or a subject."""

    tier: TierOf
    item: str = Field(description="Generation task.")
    by: str = Field(description="Name of the grouping.")
    group: str = Field(description="Name of the group.")
    prompts: int = Field(description="Prompts of the group with verdicts on both sides.")
    value: StepValue
    bridge_value: BridgeValue
    delta: float = Field(description="Their difference.")
    low: Low
    high: High
    p: P
    p_holm: float | None = Field(description="The same, corrected over all groups of the step.")
    mde: Mde
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")


class Moves(FileModel):
    """How many of a task's prompts went from one band of pass rates to another."""

    tier: TierOf
    item: str = Field(description="Generation task.")
    bands: tuple[str, ...] = Field(description="Bands of pass rates, in words.")
    counts: tuple[tuple[int, ...], ...] = Field(
        description="Prompts; a row for each band at the bridge, a column for each at the step."
    )


class SummaryRow(FileModel):
    """A row of `summary.*`: one metric of one item. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint.")
    role: str = Field(description="`step` or `bridge`.")
    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: Group
    metric: str = Field(description="Name of the metric.")
    value: float = Field(description="Its value.")
    low: float | None = Field(description="Lower end of its 95 % interval over items.")
    high: High
    chance: float | None = Field(description="Value of random choice.")
    n: Items
    delta: float | None = Field(description="The value minus the bridge's.")
    delta_low: float | None = Field(description="Lower end of the delta's 95 % interval.")
    delta_high: High
    p_holm: float | None = Field(description="Corrected p-value of no difference.")
    mde: Mde
    verdict: str | None = Field(description="Of the item: better, worse, unclear.")
    step_verdict: str | None = Field(description="Of the objective: met, not met, undecided.")
    gone: bool = Field(description="Whether the checkpoint was deleted since it was scored.")
    note: str | None = Field(None, description="Why the value has no interval.")


class RetentionRow(FileModel):
    """A row of `retention.csv`: what a later checkpoint has of an item that an earlier one had."""

    earlier: str = Field(description="The earlier checkpoint: stage and step.")
    later: str = Field(description="The later checkpoint.")
    tier: TierOf
    item: str = Field(
        description="Slice, task or category; `overall`, or `overall of N shared items`: of those of every pair."
    )
    metric: str = Field(description="Name of the metric.")
    earlier_value: float = Field(description="The earlier one's value.")
    value: float = Field(description="The later one's value.")
    delta: float = Field(description="`value` minus `earlier_value`.")
    low: float | None = Field(description="Lower end of its 95 % interval.")
    high: High
    p_holm: float | None = Field(
        description="p-value of no difference, corrected over all primary deltas of the pair."
    )
    n: Items
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")


DELTA_COLUMNS = columns_of(DeltaRow)
RETENTION_COLUMNS = columns_of(RetentionRow)
SUMMARY_COLUMNS = columns_of(SummaryRow)
