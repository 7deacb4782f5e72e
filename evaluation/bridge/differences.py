"""Paired differences of an item's units on two sides."""

from dataclasses import dataclass, replace

import numpy as np

from evaluation.metrics.layout import Grouping
from evaluation.metrics.variance import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Paired:
    """Differences of an item's units on two sides, (n,): all that is said of two sides follows.

    `amounts` are NaN where a unit could not be judged on both sides. `weights` are the denominators of a
    ratio. A `credit` is in [0, 1]; `passes` states that all credits, on both sides, are 0 or 1.
    """

    amounts: Floats
    groups: Grouping
    weights: Floats | None = None
    credit: bool = False
    passes: bool = False

    @property
    def judged(self) -> "Paired":
        """The differences of the units that could be judged on both sides."""
        known = np.isfinite(self.amounts)
        if known.all():
            return self
        weights = None if self.weights is None else self.weights[known]
        groups = self.groups.only(known)
        return replace(self, amounts=self.amounts[known], weights=weights, groups=groups)
