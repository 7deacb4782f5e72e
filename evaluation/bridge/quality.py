"""How much a task can tell: of a series of checkpoints, and of so many questions.

monotonicity   Spearman's rank correlation of values with steps, turned so that 1 is steady gain
noise          what neighbouring checkpoints scatter by once the trend is taken off: each value
               less the straight line between its two neighbours, (r_i - w r_before
               - (1 - w) r_after), whose variance is (1 + w^2 + (1 - w)^2) times that of one
               checkpoint (Gasser, Sroka and Jennen-Steinmetz, Biometrika 73, 1986)
signal         change along the least squares line from the first to the last checkpoint. The
               range of the values, as in "Signal and Noise" (arXiv 2508.13144), grows with the
               noise itself where a stage has few checkpoints
agreement      share of all pairs of checkpoints that two metrics order alike, ties as one half:
               (1 + Kendall's tau) / 2
needed         n = (z_alpha/2 + z_beta)^2 omega^2 / delta^2 questions to see a difference delta
               (Miller, arXiv 2411.00640), omega^2 the variance of a question's paired
               difference, by Student's t. Where so few questions turn that the exact test is
               used, the smallest n that gives it the same power
"""

import math
from collections.abc import Sequence

import numpy as np

from evaluation.bridge.discordance import FEW, FEWEST_TO_REJECT
from evaluation.bridge.power import power
from evaluation.bridge.statistics import ALPHA, POWER, quantile
from evaluation.metrics.spread import Floats

FEWEST_STEPS = 3
"""Checkpoints, below which a series shows neither trend nor noise."""

MOST = 10**9
"""Questions that nobody asks."""


def monotonicity(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Spearman's rho of values with steps; None for few checkpoints, or values that never change."""
    if len(steps) < FEWEST_STEPS:
        return None
    x, y = ranks(steps), ranks(values)
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else None


def ranks(values: Sequence[float]) -> Floats:
    """Ranks from 1 on; equal values share the mean of theirs."""
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2)[place]
    return shared


def neighbour_noise(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Standard deviation of one checkpoint about a trend that is straight between its neighbours."""
    if len(steps) < FEWEST_STEPS:
        return None
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    before = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
    off = y[1:-1] - before * y[:-2] - (1 - before) * y[2:]
    return float(np.sqrt(np.mean(off**2 / (1 + before**2 + (1 - before) ** 2))))


def trend(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Change from the first to the last step along the least squares line."""
    if len(steps) < FEWEST_STEPS:
        return None
    x = np.asarray(steps, dtype=np.float64) - np.mean(steps)
    slope = float(x @ np.asarray(values, dtype=np.float64)) / float(x @ x)
    return slope * float(x[-1] - x[0])


def agreement(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Share of all pairs of checkpoints that both order alike; None for few checkpoints."""
    if len(ours) < FEWEST_STEPS:
        return None
    above = np.triu_indices(len(ours), 1)
    sides = [
        np.sign(np.subtract.outer(np.asarray(one), np.asarray(one)))[above]
        for one in (ours, theirs)
    ]
    return float((1 + sides[0] * sides[1]).mean() / 2)


def needed_units(variance: float, difference: float, turning: float | None = None) -> int | None:
    """Questions, prompts or blocks that show a difference with probability POWER at ALPHA.

    `variance` is that of one unit's paired difference; `turning` the share of units that turn, where
    the exact test is for few of them. None if none turns and nothing is known of the variance.
    """
    if turning is None:
        return _by_t(variance, difference) if variance > 0 else None
    if turning <= 0:
        return None
    plain = max(_by_t(variance, difference), FEWEST_TO_REJECT)
    share = min(1.0, max(turning, difference))
    return _exact(plain, difference, share) if plain * share < FEW else plain


def _by_t(variance: float, difference: float) -> int:
    """The smallest n by Student's t with n - 1 degrees of freedom, which is found by repeating."""
    found, df = 2.0, None
    for _ in range(20):
        reach = quantile(1 - ALPHA / 2, df) + quantile(POWER, df)
        found = min(float(MOST), reach**2 * variance / difference**2)
        df = max(1.0, found - 1)
    return max(2, math.ceil(found - 1e-6))


def _exact(least: int, difference: float, share: float) -> int:
    """The smallest n from `least` on, as far as the exact test is used, that has the power."""
    low, high = FEWEST_TO_REJECT, max(least, math.ceil(FEW / share))
    if power(high, difference, share) < POWER:
        return high
    while low < high:
        middle = (low + high) // 2
        is_enough = power(middle, difference, share) >= POWER
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return high
