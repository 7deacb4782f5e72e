"""Student's t of a skewed mean, and Hall's correction of it (JRSS B 54, 1992).

With s the skewness of the estimate (third cumulant over the standard deviation cubed; the items' own
over sqrt(n)), the statistic T = (estimate - truth) / se is turned into

    g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6

which follows Student's t to the next order, as the bootstrap-t does, without random draws. Each
bound is the wider of the two: `cautious(T)` is T or g(T), whichever is nearer to no difference. Both
rise everywhere, so intervals and p-values agree.
"""

import numpy as np

from evaluation.metrics.spread import Floats, Spread

STRONG = 0.25
"""Skewness of an estimate beyond which more than the nominal share of intervals misses the truth."""


def unit_skewness(spread: Spread) -> float:
    """Return the skewness of an estimate whose units are independent of one another.

    Args:
        spread: the units' influences, scaled so that their squares add up to the variance.
    """
    units: Floats = spread.independent if spread.dependent is None else spread.dependent
    variance = spread.variance
    return float((units**3).sum() / variance**1.5) if variance > 0 else 0.0


def cautious(t: float, skew: float) -> float:
    """Return T or g(T), whichever speaks less for a difference above zero."""
    return min(t, symmetric(t, skew))


def reach(x: float, skew: float) -> float:
    """Return the T for which `cautious(T)` is x."""
    return max(x, skewed(x, skew))


def symmetric(t: float, skew: float) -> float:
    """g(T)."""
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def skewed(x: float, skew: float) -> float:
    """The T for which g(T) = x."""
    if abs(skew) < 1e-9:
        return x
    return float(3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1))
