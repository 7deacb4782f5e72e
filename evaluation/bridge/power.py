"""What a task can detect: power of its tests, and signal and noise of its series of checkpoints.

Before any difference is measured, power depends on how many prompts change their verdict at all:
changes for the better and for the worse cancel in the rate, and each adds noise. The test is McNemar's
exact one at ALPHA, in which only changed prompts count.

Where differences are measured, n = (z_alpha/2 + z_beta)^2 omega^2 / delta^2 questions show a difference
delta (Miller, arXiv 2411.00640), with omega^2 the variance of a question's paired difference, by
Student's t. Where so few questions change that the exact test is used, n is the smallest number that
gives this test the same power.

Of a series of checkpoints:

monotonicity   Spearman's rank correlation of values with steps, signed so that 1 is steady gain
noise          scatter of neighbouring checkpoints about the trend: each value
               minus the straight line between its two neighbours, (r_i - w r_before
               - (1 - w) r_after), whose variance is (1 + w^2 + (1 - w)^2) times that of one
               checkpoint (Gasser, Sroka and Jennen-Steinmetz, Biometrika 73, 1986)
"""

import functools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.bridge.estimate import ALPHA, POWER, quantile
from evaluation.bridge.exact_tests import mcnemar
from evaluation.bridge.paired_binary import FEW, FEWEST_TO_REJECT
from evaluation.metrics.variance import Floats

_FEWEST_STEPS = 3
"""Fewest checkpoints of a series that shows trend and noise."""

_MOST = 10**9
"""Upper bound of the number of questions; no suite has as many."""


def power(n: int, change: float, changing: float) -> float:
    """Return the probability that the exact test shows a change of the rate.

    Args:
        change: True change of the rate, a fraction from 0 to `changing`.
        changing: Share of prompts that change their verdict; above 0.
    """
    worse = (1 - change / changing) / 2
    losses = _most_losses(n)
    chance = np.where(losses < 0, 0.0, special.bdtr(np.maximum(losses, 0), np.arange(n + 1), worse))
    return float(_binomial(n, changing) @ chance)


@functools.cache
def _most_losses(n: int) -> NDArray[np.int64]:
    """Return how many of 0 to n changed prompts may be losses so that the test rejects; -1: none."""
    largest = np.full(n + 1, -1, dtype=np.int64)
    for pairs in range(1, n + 1):  # one prompt more allows one loss more at most
        losses = largest[pairs - 1] + 1
        largest[pairs] = losses if mcnemar(pairs - losses, losses) < ALPHA else losses - 1
    return largest


def _binomial(n: int, share: float) -> Floats:
    """Return the binomial probabilities of 0 to n successes, each with probability `share`."""
    k = np.arange(n + 1)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    probabilities: Floats = np.exp(ways + special.xlogy(k, share) + special.xlog1py(n - k, -share))
    return probabilities


def needed_units(variance: float, difference: float, turning: float | None = None) -> int | None:
    """Return how many units show a difference with probability POWER at ALPHA; None if none changes.

    Args:
        difference: True difference of the means, in the unit of the metric; not zero.
        turning: Share of units that change their verdict, for metrics with the exact test; None for
            others.
    """
    if turning is None:
        return _by_t(variance, difference) if variance > 0 else None
    if turning <= 0:
        return None
    plain = max(_by_t(variance, difference), FEWEST_TO_REJECT)
    share = min(1.0, max(turning, difference))
    return _exact(plain, difference, share) if plain * share < FEW else plain


def _by_t(variance: float, difference: float) -> int:
    """Return the smallest n by Student's t with n - 1 degrees of freedom, by fixed-point iteration."""
    effect, df = 2.0, None
    for _ in range(20):
        reach = quantile(1 - ALPHA / 2, df) + quantile(POWER, df)
        effect = min(float(_MOST), reach**2 * variance / difference**2)
        df = max(1.0, effect - 1)
    return max(2, math.ceil(effect - 1e-6))


def _exact(least: int, difference: float, share: float) -> int:
    """Return the smallest n with enough power, up to `least` or where the exact test is no longer used."""
    most = max(least, math.ceil(FEW / share))
    if power(most, difference, share) < POWER:
        return most
    sizes = range(FEWEST_TO_REJECT, most)
    return FEWEST_TO_REJECT + bisect_left(sizes, POWER, key=lambda n: power(n, difference, share))


@dataclass(frozen=True)
class Series:
    """A metric's `values` at `steps` in ascending order; few checkpoints show neither trend nor noise."""

    steps: Sequence[float]
    values: Sequence[float]

    @property
    def monotonicity(self) -> float | None:
        """Spearman's rank correlation of values with steps; None also for values that never change."""
        if len(self.steps) < _FEWEST_STEPS:
            return None
        x, y = _ranks(self.steps), _ranks(self.values)
        x, y = x - x.mean(), y - y.mean()
        size = math.sqrt(float(x @ x) * float(y @ y))
        return float(x @ y) / size if size > 0 else None

    @property
    def noise(self) -> float | None:
        """Standard deviation of one checkpoint about the trend, straight between its two neighbours."""
        if len(self.steps) < _FEWEST_STEPS:
            return None
        x, y = (np.asarray(one, dtype=np.float64) for one in (self.steps, self.values))
        before = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
        off = y[1:-1] - before * y[:-2] - (1 - before) * y[2:]
        return float(np.sqrt(np.mean(off**2 / (1 + before**2 + (1 - before) ** 2))))


def _ranks(values: Sequence[float]) -> Floats:
    """Return ranks from 1 on; equal values share the mean of theirs."""
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2)[place]
    return shared
