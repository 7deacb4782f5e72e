"""Exact tests of items that pass or fail: McNemar's test, Tango's interval, the unconditional test.

Items that are right on both sides, or wrong on both, say nothing about a difference; only discordant
items do, `wins` and `losses`:

    p-value    exact binomial: a fair coin for each discordant item (McNemar's exact test)
    interval   Tango's score interval (Statistics in Medicine 17, 1998), which also holds for no
               discordant item at all: +-z^2 / (n + z^2), the score test's rule of three. Where the
               exact test does not reject, zero is inside: the interval is extended to it.
    margins    the exact unconditional test of a difference other than zero: the probability of a
               score as large as the observed one, at the rate of losses where it is largest
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from evaluation.bridge.estimate import PairCounts, quantile
from evaluation.metrics.variance import Floats

_HALVINGS = 50
"""Halvings that find a root in an interval of at most 2 to the last digit. Importing scipy.optimize
would take longer, in each step's own process."""

_UNLIKELY = 1e-4
"""Probability that the true rate of losses is outside the interval that the exact test searches."""


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided p-value of McNemar's exact test; 1 where no item differs.

    Args:
        wins: Items that pass on our side alone.
        losses: Items that pass on the other side alone.
    """
    return min(1.0, 2 * float(special.bdtr(min(wins, losses), wins + losses, 0.5)))


def exact_interval(counts: PairCounts, alpha: float) -> tuple[float, float]:
    """Return Tango's interval, with zero in it where the exact test does not reject."""
    low, high = tango_interval(*counts, alpha)
    is_shown = mcnemar(counts.wins, counts.losses) < alpha
    return (low, high) if is_shown else (min(low, 0.0), max(high, 0.0))


def unconditional_p(wins: int, losses: int, n: int, bound: float) -> float:
    """Return the largest probability, over the rate q of losses, of a score as large as the observed one.

    q is searched in its confidence interval, which misses the true rate with probability _UNLIKELY at
    most; that is added to the result (Berger and Boos, JASA 89, 1994).
    """
    most = min((1 - bound) / 2, float(special.gammaincinv(losses + 1, 1 - _UNLIKELY)) / n)
    rates = np.linspace(max(0.0, -bound), max(most, max(0.0, -bound)), 25)
    cap = [min(n, int(x + 8 * math.sqrt(x) + 12)) for x in (n * (rates[-1] + bound), n * rates[-1])]
    w, lost = (grid.ravel() for grid in np.mgrid[0 : cap[0] + 1, 0 : cap[1] + 1].astype(float))
    far = (w + lost <= n) & (_score(w, lost, n, bound) >= _score(wins, losses, n, bound) - 1e-9)
    w, lost = w[far], lost[far]
    rest = n - w - lost
    ways = special.gammaln(n + 1) - special.gammaln([w + 1, lost + 1, rest + 1]).sum(axis=0)
    chances = [
        np.exp(
            ways
            + special.xlogy(w, max(0.0, q + bound))
            + special.xlogy(lost, q)
            + special.xlogy(rest, max(0.0, 1 - bound - 2 * q))
        ).sum()
        for q in rates
    ]
    return min(1.0, float(max(chances)) + _UNLIKELY)


def _score(wins: Floats | float, losses: Floats | float, n: int, d: float) -> Any:
    """Return the score of a difference d, as in `tango_interval`; 0 where nothing differs and d is 0."""
    linear = -wins - losses + (2 * n - wins + losses) * d
    root = np.sqrt(np.maximum(0.0, linear**2 + 8 * n * losses * d * (1 - d)))
    variance = n * ((root - linear) / (2 * n) + d * (1 - d))
    return (wins - losses - n * d) / np.sqrt(np.maximum(variance, 1e-12))


def tango_interval(wins: int, losses: int, n: int, alpha: float) -> tuple[float, float]:
    """Return the range of differences that the score test does not reject.

    The score is (wins - losses - n d) / sqrt(n (2 q + d (1 - d))), with q the rate of losses that
    is likeliest given d: the root of 2n q^2 + (-wins - losses + (2n - wins + losses) d) q
    - losses d (1 - d).
    """
    z = quantile(1 - alpha / 2, None)
    centre = (wins - losses) / n

    def excess(d: float) -> float:
        linear = -wins - losses + (2 * n - wins + losses) * d
        root = math.sqrt(max(0.0, linear**2 + 8 * n * losses * d * (1 - d)))
        q = (root - linear) / (4 * n)
        return (wins - losses - n * d) ** 2 - z**2 * n * (2 * q + d * (1 - d))

    return _root(excess, centre, -1.0), _root(excess, centre, 1.0)


def _root(excess: Callable[[float], float], centre: float, end: float) -> float:
    near = centre + math.copysign(1e-9, end)
    if abs(centre - end) < 1e-9 or excess(end) <= 0:
        return end
    return bisect(lambda d: excess(d) > 0, near, end)[0]


def bisect(is_beyond: Callable[[float], bool], near: float, end: float) -> tuple[float, float]:
    """Return the last place where a condition is false, and the first, very near it, where it is true.

    Args:
        is_beyond: False at `near`, true at `end`, with one change between them.
        end: End at which the condition is true; may be less than `near`.
    """
    for _ in range(_HALVINGS):
        middle = (near + end) / 2
        near, end = (near, middle) if is_beyond(middle) else (middle, end)
    return near, end
