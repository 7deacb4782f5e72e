"""Paired differences of an item's units on two sides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.serial_dependence import ratio_influence, variance_of
from evaluation.metrics.variance import Floats, Variance

Kind = Literal["credit", "measure", "ratio"]
"""Credit in [0, 1]; a real-valued measure; a ratio of sums over blocks of text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Differences:
    """Paired differences of a metric over an item's units, (n,): all that is said of two sides follows.

    `amounts` are NaN where a unit could not be judged on both sides. `weights` are the denominators of a
    ratio. `passes` states that all credits, on both sides, are 0 or 1.
    """

    kind: Kind
    amounts: Floats
    layout: Layout
    weights: Floats | None = None
    passes: bool = False

    @property
    def judged(self) -> "Differences":
        """The differences of the units that could be judged on both sides."""
        is_known = np.isfinite(self.amounts)
        if is_known.all():
            return self
        weights = None if self.weights is None else self.weights[is_known]
        layout = self.layout.only(is_known)
        return replace(self, amounts=self.amounts[is_known], weights=weights, layout=layout)

    @property
    def influence(self) -> Floats:
        """What each unit contributes to their mean, or to the ratio, (units,); they add up to zero."""
        if self.weights is not None:
            return ratio_influence(self.amounts, self.weights)
        influence: Floats = (self.amounts - self.amounts.mean()) / len(self.amounts)
        return influence

    @property
    def variance(self) -> Variance:
        """The variance of the mean, or of the ratio, with the dependence of units."""
        return variance_of(self.influence, self.layout)

    def minus(self, other: "Differences") -> "Differences":
        """Return the differences of two sides that were both compared with the same third one."""
        amounts = self.amounts - other.amounts
        if self.kind == "credit":  # fractions such as 1/3 are rounded
            amounts = np.where(np.abs(amounts) < 1e-12, 0.0, amounts)
        return replace(self, amounts=amounts, passes=self.passes and other.passes)


def mean_differences(differences: Sequence[Differences]) -> Differences:
    """Return the mean over several checkpoints of each unit's difference, of the same units."""
    amounts = np.mean([difference.amounts for difference in differences], axis=0)
    return replace(differences[0], amounts=amounts, passes=False)
