"""Rows of deltas: of two checkpoints, of groups of prompts, and of positions."""

from typing import Literal

from evaluation.results.columns import columns_of
from evaluation.results.files import FileModel
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, TierName

Flag = Literal["better", "worse", "unclear"]


class DeltaColumns(FileModel):
    """The columns of a delta between any two checkpoints."""

    tier: TierName
    item: str
    group: str | None
    metric: str
    delta: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    mde: float | None
    n: int
    clusters: int
    higher_is_better: bool
    primary: bool
    flag: Flag | None
    method: str
    note: str | None

    @property
    def definition(self) -> Metric:
        """The metric of the delta."""
        return TIERS[self.tier].metric(self.metric)


class DeltaRow(DeltaColumns):
    """A delta of one metric of one item. Stable: new columns go to the end."""

    stage: str
    step: int
    bridge: str
    value: float
    bridge_value: float


class Change(FileModel):
    """A value of a step, the bridge's, and the interval of their difference."""

    tier: TierName
    value: float
    bridge_value: float
    delta: float
    low: float | None
    high: float | None


class GroupDelta(Change):
    """The headline's delta among the prompts of a fixed group, such as a level or a subject."""

    item: str
    by: str
    group: str
    prompts: int
    p: float | None
    p_holm: float | None
    mde: float | None
    flag: Flag | None


class PositionDelta(Change):
    """The headline's delta at some positions of a slice: descriptive, and of no family of tests."""

    item: str
    first: int
    last: int
    tokens: int
    n: int
    note: str | None


DELTA_COLUMNS = columns_of(DeltaRow, "stage step bridge tier item group metric value bridge_value")
