"""Rows of verdicts on an objective, with what limits, refines or confirms them."""

from typing import Literal

from evaluation.results.delta_rows import Change
from evaluation.results.files import FileModel
from evaluation.settings.metric import Metric
from evaluation.settings.objectives import aim_in_words, objective_in_words
from evaluation.settings.tiers import TIERS, TierName

ObjectiveVerdict = Literal["met", "not met", "undecided"]


class SecondaryRow(FileModel):
    """The result of a secondary metric where an objective is undecided."""

    metric: str
    shows: Literal["better", "worse", "undecided"]
    delta: float
    low: float
    high: float
    sentence: str


class RecipeRow(FileModel):
    """An objective's delta as a difference of recipes: its interval includes the noise of checkpoints."""

    low: float
    high: float
    se_checkpoints: float
    share_checkpoints: float | None = None
    checkpoints: int
    bridge_checkpoints: int | None = None
    verdict: ObjectiveVerdict
    sentence: str


class NoiseRow(FileModel):
    """How much an item's headline varies between the last checkpoints of a stage, in standard deviations."""

    tier: TierName
    item: str
    metric: str
    checkpoints: int
    level: float
    flicker: float


class ObjectiveRow(Change):
    """The verdict on a step by one objective of its stage."""

    want: Literal["improve", "keep"]
    group: str | None
    margin: float
    verdict: ObjectiveVerdict
    metric: str
    items: tuple[str, ...]
    mde: float | None
    regressions: tuple[str, ...]
    why: str
    secondary: SecondaryRow | None = None
    shares: dict[str, float] = {}
    limited_by: str | None = None
    needed_times: float | None = None
    recipe: RecipeRow | None = None

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
