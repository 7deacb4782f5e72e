"""Rows of verdicts on an objective."""

from typing import Literal

from evaluation.results.delta_rows import Change
from evaluation.settings.metric import Metric
from evaluation.settings.objectives import aim_in_words, objective_in_words
from evaluation.settings.tiers import TIERS

ObjectiveVerdict = Literal["met", "not met", "undecided"]


class ObjectiveRow(Change):
    """The verdict on a step by one objective of its stage.

    `recipe_noise` is the standard deviation that the choice of one checkpoint on each side adds to the delta,
    by the scatter of the last ones; the recipe's interval includes it. None for fewer than three.
    """

    want: Literal["improve", "keep"]
    group: str | None
    margin: float
    verdict: ObjectiveVerdict
    metric: str
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

    @property
    def in_words(self) -> str:
        """The metric that decides it, with the tier's title and its group."""
        return objective_in_words(self.tier, self.definition, self.group)

    @property
    def aim(self) -> str:
        """What is wanted of the metric."""
        return aim_in_words(self.want, self.margin, self.definition)
