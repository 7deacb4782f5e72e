"""Rows of deltas: of two checkpoints, of groups of prompts, and of positions."""

from typing import Annotated, Literal

from pydantic import Field

from evaluation.results.columns import columns_of
from evaluation.results.files import FileModel
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, TierName

Flag = Literal["better", "worse", "unclear"]

TierOf = Annotated[TierName, Field(description="Name of the tier.")]
Group = Annotated[str | None, Field(description="Group that objectives refer to.")]
StepValue = Annotated[float, Field(description="The step's value.")]
BridgeValue = Annotated[float, Field(description="The bridge's value.")]
Low = Annotated[float | None, Field(description="Lower end of the 95 % interval of the delta.")]
High = Annotated[float | None, Field(description="Upper end of that interval.")]
P = Annotated[float | None, Field(description="Two-sided p-value of no difference.")]
Mde = Annotated[
    float | None,
    Field(
        description="Minimum detectable effect (MDE) of the test; no change of a fraction is "
        "detectable if it is 1 or more."
    ),
]
Items = Annotated[int, Field(description="Blocks, questions or prompts.")]
Note = Annotated[str | None, Field(description="Why a value is unknown.")]
"""Columns that rows of several files share."""


class DeltaColumns(FileModel):
    """The columns of a delta between any two checkpoints."""

    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: Group
    metric: str = Field(description="`delta_` and the name of the metric.")
    delta: float = Field(description="`value` minus `bridge_value`; of runs, A's minus B's.")
    low: Low
    high: High
    p: P
    p_holm: float | None = Field(description="That p-value, corrected over the primary deltas.")
    mde: Mde
    n: Items
    clusters: int = Field(description="Number of independent units: items, or clusters of them.")
    higher_is_better: bool = Field(description="Whether a positive delta is better.")
    primary: bool = Field(description="Whether the correction for multiple tests includes it.")
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")
    method: str = Field(description="How interval and p-value were computed.")
    note: Note

    @property
    def definition(self) -> Metric:
        """The metric of the delta."""
        return TIERS[self.tier].metric(self.metric)


class DeltaRow(DeltaColumns):
    """A delta of one metric of one item. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    step: int = Field(description="Step of the checkpoint.")
    bridge: str = Field(description="The bridge, by the last two folders of its path.")
    value: StepValue
    bridge_value: BridgeValue


class Change(FileModel):
    """A value of a step, the bridge's, and the interval of their difference."""

    tier: TierOf
    value: StepValue
    bridge_value: BridgeValue
    delta: float = Field(description="Their difference.")
    low: Low
    high: High


class GroupDelta(Change):
    """The headline's delta among the prompts of a fixed group, such as a level or a subject."""

    item: str = Field(description="Generation task.")
    by: str = Field(description="Name of the grouping.")
    group: str = Field(description="Name of the group.")
    prompts: int = Field(description="Prompts of the group with verdicts on both sides.")
    p: P
    p_holm: float | None = Field(description="That p-value, corrected over all groups of the step.")
    mde: Mde
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")


class PositionDelta(Change):
    """The headline's delta at some positions of a slice: descriptive, and of no family of tests."""

    item: str = Field(description="Slice.")
    first: int = Field(description="First position: tokens that the model sees before it.")
    last: int = Field(description="Last position.")
    tokens: int = Field(description="Scored tokens there.")
    n: int = Field(description="Blocks with tokens there.")
    note: Note


DELTA_COLUMNS = columns_of(DeltaRow, "stage step bridge tier item group metric value bridge_value")
