"""A step's `bridge_deltas.json`: deltas in long form, one verdict for each objective, the step's verdict."""

from typing import Any, ClassVar, Literal

from evaluation.results.files import FileModel, StageFile
from evaluation.settings import protocol
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, TierName

DELTAS = "bridge_deltas.json"

Flag = Literal["better", "worse", "unclear"]
ObjectiveVerdict = Literal["met", "not met", "undecided"]


Rows = tuple[dict[str, Any], ...]
"""Rows of a table, values by column; their writers say which columns there are."""


class Change(FileModel):
    """A value of a step, the bridge's, and the interval of their difference."""

    tier: TierName
    group: str | None
    metric: str
    value: float
    bridge_value: float
    delta: float
    low: float | None
    high: float | None


class ObjectiveRow(Change):
    """The verdict on a step by one objective of its stage.

    `recipe_noise` is the standard deviation that the choice of one checkpoint on each side adds to the delta,
    by the scatter of the last ones; the recipe's interval includes it. None for fewer than three.
    """

    want: Literal["improve", "keep"]
    margin: float
    verdict: ObjectiveVerdict
    items: tuple[str, ...]
    mde: float | None
    regressions: tuple[str, ...]
    why: str
    recipe_noise: float | None = None
    recipe_low: float | None = None
    recipe_high: float | None = None

    @property
    def definition(self) -> Metric:
        """The metric that decides it."""
        return TIERS[self.tier].metric(self.metric)

    @property
    def gain(self) -> float:
        """The difference, positive where it is better."""
        return self.delta if self.definition.higher_is_better else -self.delta


class ComparedCheckpoint(FileModel):
    """One of the two checkpoints that are compared."""

    path: str
    identity: str
    step: int | None
    protocols: dict[str, str]
    tokenizer: str | None
    sequence_length: int
    gpu: str | None = None
    row_tokens: tuple[int, ...] = ()


class StepVerdict(FileModel):
    """The verdict on a step, with those on its objectives."""

    step: int
    verdict: ObjectiveVerdict | None
    own_verdict: ObjectiveVerdict | None = None
    objectives: tuple[ObjectiveRow, ...]


class StepDeltas(StepVerdict, StageFile):
    """A step's `bridge_deltas.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("bridge", protocol.BRIDGE)

    stage: str
    protocol: str
    confidence: float
    alpha: float
    power: float
    checkpoint: ComparedCheckpoint
    bridge: ComparedCheckpoint
    notes: tuple[str, ...] = ()
    deltas: Rows
    groups: Rows = ()
    by_position: Rows = ()
