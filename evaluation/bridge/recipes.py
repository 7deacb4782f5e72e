"""The noise of recipes: how much the choice of one checkpoint on each side adds to a difference.

An interval over questions is about these weights. Another checkpoint of the same run has another level, so
from FEWEST checkpoints on, a second interval is about the recipe (a stage, a mix of data). The noise is one
number, sqrt(2 V), with V the variance of the last checkpoints' deltas: the bridge's own level is assumed to
scatter as much as theirs. A trend, and the flicker of single answers, count as noise, so the interval is too
wide rather than too narrow. Its reach is sqrt(a^2 + b^2), with a that of the questions and b the noise times
Student's t of k - 1 degrees of freedom (Graybill and Wang, JASA 75, 1980).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluation.bridge.estimate import ALPHA, Estimate, quantile
from evaluation.settings.requested_steps import FEWEST, last_ones


class RecipeInterval(NamedTuple):
    """A difference as one of recipes: the noise that it adds, and the interval with it."""

    noise: float
    low: float
    high: float


def of_recipe(estimate: Estimate, values: Sequence[float], sides: int = 2) -> RecipeInterval | None:
    """Return the interval of a difference with the noise of checkpoints; None for too few of them.

    Args:
        values: The difference at each checkpoint, in ascending steps.
        sides: How often the noise counts: 1 where each value has a checkpoint of its own on both sides.
    """
    last = last_ones(values)
    if len(last) < FEWEST or estimate.low is None or estimate.high is None:
        return None
    noise = math.sqrt(sides * float(np.var(last, ddof=1)))
    reach = quantile(1 - ALPHA / 2, len(last) - 1) * noise
    below, above = estimate.value - estimate.low, estimate.high - estimate.value
    low = estimate.value - math.hypot(below, reach)
    high = estimate.value + math.hypot(above, reach)
    limit = math.inf if estimate.limit is None else estimate.limit
    return RecipeInterval(noise, max(low, -limit), min(high, limit))
