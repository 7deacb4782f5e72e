"""What a task can detect: the questions that show a difference, and whether a series is steady.

n = (z_alpha/2 + z_beta)^2 omega^2 / delta^2 questions show a difference delta (Miller, arXiv 2411.00640),
with omega^2 the variance of a question's difference; at least so many that the exact test can reject.
"""

import math
from collections.abc import Sequence

import numpy as np

from evaluation.bridge.estimate import ALPHA, POWER, quantile

FEWEST_TO_REJECT = 6
"""2 * 0.5^6 < 0.05 < 2 * 0.5^5."""


def needed_units(variance: float, difference: float, turning: float | None = None) -> int | None:
    """Return how many units show a difference with POWER at ALPHA; `turning` is the share that flips."""
    if variance <= 0 or turning == 0:
        return None
    reach = quantile(1 - ALPHA / 2, math.inf) + quantile(POWER, math.inf)
    n = max(2, math.ceil(reach**2 * variance / difference**2) + 2)
    return n if turning is None else max(n, math.ceil(FEWEST_TO_REJECT / min(1.0, turning)))


def monotonicity(values: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation of a series with its order; None for few or equal values."""
    if len(values) < 3 or len(set(values)) < 2:
        return None
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")
    return float(np.corrcoef(np.arange(len(values)), ranks)[0, 1])
