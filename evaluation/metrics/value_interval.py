"""The mean over the units of a checkpoint's item, with its standard error and 95 % interval.

Clusters, strata and source rows that several units ask count, as they do in differences (`variance`).

All shares have Wilson's interval (JASA 22:209, 1927) for as many independent units as have the standard
error, n = p (1 - p) / se^2 + 1, with Student's quantile for the degrees of freedom of that error (Korn
and Graubard, Survey Methodology 24, 1998; Dean and Pagano, Journal of Survey Statistics and Methodology
3, 2015). Units that pass or fail and are in no groups have Wilson's own interval, as p gives their
variance. Fractions such as pass@k vary less than passes, so their n is larger. Where all units have the
same score, the variance is not known: there is no standard error, and n is the number of independent
units. Means of such shares with others add up the squares of their distances to their bounds (Newcombe,
Statistics in Medicine 17:873, 1998; Zou and Donner, Statistics in Medicine 27:1693, 2008).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import special

from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import LEVEL, Floats, Variance, influence_variance, wilson

_ALIKE = 1e-9
"""Scores that differ by less are alike, as is a probability of 1e-48 for some answers, 0 for others."""


class Interval(NamedTuple):
    """A mean over units; no standard error and bounds where the variance is not known."""

    value: float
    stderr: float | None
    low: float | None
    high: float | None


def standard_error(values: Floats, layout: Layout) -> float | None:
    """Return the mean's standard error; None for a single unit or cluster, or where all units are alike."""
    variance = _variance(values, layout)
    return math.sqrt(variance.value) if variance is not None and variance.value > 0 else None


def interval(credit: Floats, layout: Layout | None = None) -> Interval:
    """Return the mean over units with its standard error and 95 % bounds, all as fractions.

    Args:
        credit: From 0 to 1, for each unit.
        layout: How units depend on one another; None if they do not.
    """
    layout = layout or Layout(len(credit))
    mean = float(credit.mean())
    variance = _variance(credit, layout)
    if variance is None:
        return Interval(mean, None, None, None)
    stderr = math.sqrt(variance.value) if variance.value > 0 else None
    is_plain = layout.groups is None and bool((np.minimum(credit, 1 - credit) < _ALIKE).all())
    df = None if is_plain else variance.df
    return Interval(mean, stderr, *share_bounds(mean, stderr, variance.units, df))


def share_bounds(
    value: float, stderr: float | None, units: float, df: float | None
) -> tuple[float, float]:
    """Return the 95 % interval of a share from its standard error.

    Args:
        units: Number of independent units, which is used where there is no standard error.
        df: Degrees of freedom of the standard error; None where it follows from the share.
    """
    effective = value * (1 - value) / stderr**2 + 1 if stderr else units
    t = None if df is None else float(special.stdtrit(df, (1 + LEVEL) / 2))
    return wilson(value, effective, t)


def sum_of_shares(parts: Iterable[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the 95 % interval of a sum of independent estimates, each given as value, low and high."""
    value, below, above = np.array([[x, x - low, high - x] for x, low, high in parts]).T
    total = float(value.sum())
    return total - float(np.linalg.norm(below)), total + float(np.linalg.norm(above))


def _variance(values: Floats, layout: Layout) -> Variance | None:
    """Return the mean's variance, exactly 0 where all units are alike; None where it cannot be estimated."""
    if len(values) < 2 or (layout.groups is not None and not layout.groups.any()):
        return None
    influence = (values - values.mean()) / len(values)
    are_alike = np.ptp(values) < _ALIKE
    return influence_variance(np.zeros_like(values) if are_alike else influence, layout)
