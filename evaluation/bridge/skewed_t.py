"""Intervals and p-values of a mean by Student's t, corrected for skewed values.

Intervals are Student's, corrected where the estimate is skewed (Hall, JRSS B 54, 1992). With s the
skewness of the estimate (third cumulant over the standard deviation cubed; the items' own over
sqrt(n)), the statistic T = (estimate - truth) / se is turned into

    g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6

which follows Student's t to the next order, as the bootstrap-t does, without random draws. Each
bound is the wider of the two: T or g(T), whichever is nearer to no difference. Both rise everywhere,
so intervals and p-values agree.
"""

from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import ALPHA, POWER, Estimate, quantile, upper_tail
from evaluation.metrics.variance import Floats


def by_t(estimate: Estimate) -> Estimate:
    """Return an estimate with interval, p-value and MDE, by its standard error and skewness.

    Args:
        estimate: A difference with `se`, `df` and `skew`.

    Returns:
        The estimate at ALPHA.
    """
    low, high = interval_by_t(estimate, ALPHA)
    tails = [p_beyond_by_t(estimate, 0.0, above=above) for above in (True, False)]
    p, mde = min(1.0, 2 * min(tails)), detectable_by_t(estimate, ALPHA)
    return replace(estimate, low=low, high=high, p=p, mde=mde)


def detectable_by_t(estimate: Estimate, alpha: float) -> float:
    """Return the minimum detectable effect (MDE) by Student's t, corrected for skewness.

    Args:
        estimate: A difference with its standard error.
        alpha: Level of the two-sided test.

    Returns:
        The true difference that the test finds with probability POWER.
    """
    assert estimate.se is not None
    half, skew = quantile(1 - alpha / 2, estimate.df), estimate.skew
    furthest = max(_reach(half, skew), _reach(half, -skew))
    return (furthest + quantile(POWER, estimate.df)) * estimate.se


def interval_by_t(estimate: Estimate, alpha: float) -> tuple[float, float]:
    """Return the interval of an estimate: on each side the wider of Student's and Hall's.

    Args:
        estimate: A difference with its standard error.
        alpha: Error rate of the two-sided interval, one minus its confidence.

    Returns:
        Low and high bound, in the estimate's unit.
    """
    assert estimate.se is not None
    half = quantile(1 - alpha / 2, estimate.df)
    low = estimate.value - estimate.se * _reach(half, estimate.skew)
    return low, estimate.value + estimate.se * _reach(half, -estimate.skew)


def p_beyond_by_t(estimate: Estimate, bound: float, *, above: bool) -> float:
    """Return the one-sided p-value of the claim that the true difference lies beyond a bound.

    Args:
        estimate: A difference with its standard error.
        bound: Difference that the truth is claimed to lie beyond, in the estimate's unit.
        above: Whether the claim is that it lies above; otherwise below.

    Returns:
        A p-value; the larger of Student's and Hall's.
    """
    assert estimate.se is not None
    distance = estimate.value - bound
    if estimate.se == 0:
        return float(distance <= 0 if above else distance >= 0)
    sign = 1 if above else -1
    t, skew = sign * distance / estimate.se, sign * estimate.skew
    return upper_tail(min(t, _corrected_t(t, skew)), estimate.df)


def _corrected_t(t: float, skew: float) -> float:
    """Return g(T)."""
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def _uncorrected_t(x: float, skew: float) -> float:
    """Return the T for which g(T) = x."""
    if abs(skew) < 1e-9:
        return x
    return float(3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1))


def _reach(x: float, skew: float) -> float:
    """Return the T for which the smaller of T and g(T) is x."""
    return max(x, _uncorrected_t(x, skew))


def skewness_of(units: Floats, variance: float) -> float:
    """Return the skewness of an estimate.

    Args:
        units: What independent units contribute to it, shape (n,); they add up to zero.
        variance: Variance of the estimate.

    Returns:
        Third cumulant over the standard deviation cubed; 0 without variance.
    """
    return float((units**3).sum() / variance**1.5) if variance > 0 else 0.0
