"""Paired differences of an item's units on two sides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats

Kind = Literal["credit", "measure", "ratio"]
"""Credit in [0, 1]; a real-valued measure; a ratio of sums over blocks of text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Differences:
    """Paired differences of one metric over one item's units, (n,): all that is said of two sides follows from them.

    `amounts` are NaN where a unit could not be judged on both sides. `weights` are the denominators of a
    ratio. `passes` states that all credits, on both sides, are 0 or 1.
    """

    kind: Kind
    amounts: Floats
    layout: Layout
    weights: Floats | None = None
    passes: bool = False

    def minus(self, other: "Differences") -> "Differences":
        """Return the differences of two sides that were both compared with the same third one.

        Args:
            other: The differences of the other side, of the same units.
        """
        amounts = self.amounts - other.amounts
        if self.kind == "credit":  # fractions such as 1/3 are rounded
            amounts = np.where(np.abs(amounts) < 1e-12, 0.0, amounts)
        return replace(self, amounts=amounts, passes=self.passes and other.passes)


def mean_differences(found: Sequence[Differences]) -> Differences:
    """Return the mean over several checkpoints of each unit's difference.

    Args:
        found: Differences of the same units, one for each checkpoint.
    """
    amounts = np.mean([one.amounts for one in found], axis=0)
    return replace(found[0], amounts=amounts, passes=False)
