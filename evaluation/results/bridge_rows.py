"""The rows of the bridge's files: of deltas, of aims, of groups of prompts, and of a stage's tables."""

from typing import Literal

from pydantic import Field

from evaluation.results.columns import columns_of
from evaluation.results.files import FileModel
from evaluation.settings.tiers import TierName

Flag = Literal["better", "worse", "unclear"]
Answer = Literal["met", "not met", "undecided"]


class DeltaRow(FileModel):
    """A delta of one metric of one item. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint.")
    bridge: str = Field(description="The bridge, by the last two folders of its path.")
    tier: TierName = Field(description="Name of the tier.")
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: str | None = Field(description="Group that objectives refer to.")
    metric: str = Field(description="`delta_` and the name of the metric.")
    value: float = Field(description="The step's value.")
    bridge_value: float = Field(description="The bridge's value.")
    delta: float = Field(description="`value` less `bridge_value`.")
    low: float | None = Field(description="Lower end of the 95 % interval of the delta.")
    high: float | None = Field(description="Upper end of it.")
    p: float | None = Field(description="Two-sided p-value of no difference.")
    p_holm: float | None = Field(description="The same, corrected over the primary deltas.")
    mde: float | None = Field(description="Smallest difference that would have been seen.")
    n: int = Field(description="Blocks, questions or prompts.")
    clusters: int = Field(description="Independent units among them: items, or clusters.")
    want: Literal["<= 0", ">= 0"] = Field(description="Sign of a delta that is no loss.")
    primary: bool = Field(description="Whether the step's correction is over it.")
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")
    method: str = Field(description="How interval and p-value were computed.")
    note: str | None = Field(description="Why something is not known.")


class CompanionRow(FileModel):
    """What stands beside an aim that is undecided."""

    metric: str = Field(description="`delta_` and the name of the metric.")
    says: Literal["better", "worse", "undecided"] = Field(description="By its interval alone.")
    delta: float = Field(description="The step's value less the bridge's, over the aim's items.")
    low: float = Field(description="Lower end of its 95 % interval.")
    high: float = Field(description="Upper end of it.")
    sentence: str = Field(description="The same in words.")


class AimRow(FileModel):
    """How a step stands to one aim of its objective."""

    tier: TierName = Field(description="Tier the aim is about.")
    want: Literal["improve", "keep"] = Field(description="What is wanted of it.")
    group: str | None = Field(description="Group of items that the aim is about.")
    margin: float = Field(description="Smallest gain, or largest loss, that counts.")
    verdict: Answer = Field(description="Whether the aim is met.")
    metric: str = Field(description="What it is decided on.")
    items: tuple[str, ...] = Field(description="Slices, tasks or categories it is about.")
    value: float = Field(description="The step's value.")
    bridge_value: float = Field(description="The bridge's value.")
    delta: float = Field(description="Their difference.")
    low: float | None = Field(description="Lower end of its 95 % interval.")
    high: float | None = Field(description="Upper end of it.")
    mde: float | None = Field(description="Smallest difference that would have been seen.")
    regressions: tuple[str, ...] = Field(description="Items that are significantly worse.")
    why: str = Field(description="The verdict's reason in words.")
    companion: CompanionRow | None = Field(
        None, description="What a measure that sees smaller differences says, if undecided."
    )


class GroupDelta(FileModel):
    """The headline's delta among the prompts of a fixed group, such as a level or a subject."""

    tier: TierName = Field(description="Name of the tier.")
    item: str = Field(description="Generation task.")
    by: str = Field(description="Name of the grouping.")
    group: str = Field(description="Name of the group.")
    prompts: int = Field(description="Prompts of the group that both sides could be judged on.")
    value: float = Field(description="The step's value.")
    bridge_value: float = Field(description="The bridge's value.")
    delta: float = Field(description="Their difference.")
    low: float | None = Field(description="Lower end of its 95 % interval.")
    high: float | None = Field(description="Upper end of it.")
    p: float | None = Field(description="Two-sided p-value of no difference.")
    p_holm: float | None = Field(description="The same, corrected over all groups of the step.")
    mde: float | None = Field(description="Smallest difference that would have been seen.")
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")


class Moves(FileModel):
    """How many of a task's prompts went from one band of pass rates to another."""

    tier: TierName = Field(description="Name of the tier.")
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
    tier: TierName = Field(description="Name of the tier.")
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: str | None = Field(description="Group that objectives refer to.")
    metric: str = Field(description="Name of the metric.")
    value: float = Field(description="Its value.")
    low: float | None = Field(description="Lower end of its 95 % interval over items.")
    high: float | None = Field(description="Upper end of it.")
    chance: float | None = Field(description="Value of a draw.")
    n: int = Field(description="Blocks, questions or prompts.")
    delta: float | None = Field(description="The value less the bridge's.")
    delta_low: float | None = Field(description="Lower end of the delta's 95 % interval.")
    delta_high: float | None = Field(description="Upper end of it.")
    p_holm: float | None = Field(description="Corrected p-value of no difference.")
    mde: float | None = Field(description="Smallest difference that would have been seen.")
    verdict: str | None = Field(description="Of the item: better, worse, unclear.")
    step_verdict: str | None = Field(description="Of the objective: met, not met, undecided.")
    gone: bool = Field(description="Whether the checkpoint was deleted since it was scored.")
    note: str | None = Field(None, description="Why the value has no interval.")


class RetentionRow(FileModel):
    """A row of `retention.csv`: what a later checkpoint has of an item that an earlier one had."""

    earlier: str = Field(description="The earlier checkpoint: stage and step.")
    later: str = Field(description="The later checkpoint.")
    tier: TierName = Field(description="Name of the tier.")
    item: str = Field(description="Slice, task or category, or `overall` of the shared ones.")
    metric: str = Field(description="Name of the metric.")
    earlier_value: float = Field(description="The earlier one's value.")
    value: float = Field(description="The later one's value.")
    delta: float = Field(description="`value` less `earlier_value`.")
    low: float | None = Field(description="Lower end of its 95 % interval.")
    high: float | None = Field(description="Upper end of it.")
    p_holm: float | None = Field(
        description="p-value of no difference, corrected over the items of a tier of the pair."
    )
    n: int = Field(description="Blocks, questions or prompts.")
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")


DELTA_COLUMNS = columns_of(DeltaRow)
RETENTION_COLUMNS = columns_of(RetentionRow)
SUMMARY_COLUMNS = columns_of(SummaryRow)
