"""Paired differences of means and ratios, with intervals, p-values and MDE.

Every estimator is reduced to the influence u_i of each unit, its contribution to the estimate (they add
up to zero). Independent units give Var = n/(n-1) sum u_i^2:

    mean of d = a - b            u_i = (d_i - mean) / n
    ratio R = sum d / sum w      u_i = (d_i - R w_i) / sum w

`metrics.variance` covers units in clusters and strata, `metrics.serial_dependence` neighbouring blocks
of text, whose order counts, `paired_binary` items that pass or fail, and `weighted_mean` means of several.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import Estimate, by_t, identical, unknown
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats, Variance

_FEWEST = 20
"""Fewest blocks, or batches of them, from which skewness is estimated."""


def mean_difference(differences: Differences) -> Estimate:
    """Return the mean of paired differences of items that count alike, all of them known."""
    layout, n = differences.layout, len(differences.amounts)
    value = float(differences.amounts.mean())
    if n < 2 or (layout.groups is not None and not layout.groups.any()):
        only = "one item" if n == 1 else f"all {n} items belong to one cluster"
        return _without_variance(value, n, only)
    variance = differences.variance
    method = "paired t" + (", clustered" if layout.groups is not None else "")
    method += ", stratified" if layout.strata is not None else ""
    skew = _skewness(_units(variance), variance.value)
    return replace(_from_variance(value, variance, n, skew, method), differences=differences)


def measure_difference(differences: Differences) -> Estimate:
    """Return the mean of paired differences of a real-valued measure, all of them known.

    Values that are equal on every one of several items are no coincidence, so the sides count as identical.
    """
    if len(differences.amounts) > 1 and not differences.amounts.any():
        return identical(n=len(differences.amounts), differences=differences)
    return mean_difference(differences)


def ratio_of_blocks(amounts: Floats, weights: Floats | None) -> Estimate:
    """Return sum(amounts) / sum(weights) over blocks in the text's order, such as nats per token.

    Args:
        amounts: Differences of two sides, or one side's own amounts, which count as a sample.
        weights: Denominator by block: tokens, or bytes times ln 2 for bits per byte.
    """
    layout = Layout(len(amounts), is_text=True)
    return ratio_difference(
        Differences(kind="ratio", amounts=amounts, weights=weights, layout=layout)
    )


def ratio_difference(differences: Differences) -> Estimate:
    """Return a difference of two ratios of sums over blocks of text, whose denominators are the weights."""
    amounts, weights = differences.amounts, differences.weights
    assert weights is not None
    n = len(amounts)
    if not amounts.any():
        return identical(n=n, differences=differences)
    value = float(amounts.sum() / weights.sum())
    if n < 2:
        return _without_variance(value, n, "one item")
    variance = differences.variance
    skew = _batch_skewness(differences.influence, variance)
    known = _from_variance(value, variance, n, skew, "paired ratio, t")
    return replace(known, differences=differences)


def _without_variance(value: float, n: int, only: str) -> Estimate:
    note = f"no interval: {only}, so its variance is not known"
    return unknown(value, n=n, units=1, note=note)


def _from_variance(value: float, variance: Variance, n: int, skew: float, method: str) -> Estimate:
    """Return an estimate by Student's t; without interval where the contributions do not differ."""
    se = math.sqrt(variance.value)
    if se <= 1e-12 * abs(value) or se == 0.0:
        same = "both sides score the same on every item" if value == 0 else "all items differ alike"
        note = f"no interval: {same}, so its variance is not known"
        return unknown(value, n=n, units=variance.units, note=note)
    estimate = Estimate(
        value=value, n=n, units=variance.units, method=method, se=se, df=variance.df
    )
    return by_t(replace(estimate, skew=skew, variance=variance))


def _units(variance: Variance) -> Floats:
    return variance.independent if variance.dependent is None else variance.dependent


def _skewness(units: Floats, variance: float) -> float:
    """Return the third cumulant over the standard deviation cubed; 0 without variance."""
    return float((units**3).sum() / variance**1.5) if variance > 0 else 0.0


def _batch_skewness(influence: Floats, variance: Variance) -> float:
    """Return the skewness of the sum of influences; 0 for fewer than _FEWEST batches.

    Dependent blocks are first added up in batches that are long enough to be nearly independent.
    """
    cosines_used = 0 if variance.dependent is None else 2 * len(variance.dependent)
    length = max(1, len(influence) // cosines_used) if cosines_used else 1
    batches = np.add.reduceat(influence, np.arange(0, len(influence), length))
    if len(batches) < _FEWEST:
        return 0.0
    batches = batches - batches.mean()
    return _skewness(batches, float(batches @ batches))


def unpaired_difference(ours: Estimate, theirs: Estimate) -> Estimate:
    """Return the difference of two estimates, if both have an interval; degrees of freedom by Welch."""
    value = ours.value - theirs.value
    n, units = ours.n + theirs.n, ours.units + theirs.units
    a, b = ours.variance, theirs.variance
    if a is None or b is None:
        note = (ours if a is None else theirs).note or "no interval: one side has none"
        return unknown(value, n=n, units=units, note=note)
    total = a.value + b.value
    df = total**2 / (a.value**2 / a.df + b.value**2 / b.df)
    third = ours.skew * a.value**1.5 - theirs.skew * b.value**1.5
    independent = np.concatenate([a.independent, -b.independent])
    dependent = np.concatenate([_scaled_units(a), -_scaled_units(b)])
    estimate = Estimate(value=value, n=n, units=units, method="two samples, t (Welch)", df=df)
    variance = Variance(independent, dependent, units, df)
    return by_t(replace(estimate, se=math.sqrt(total), skew=third / total**1.5, variance=variance))


def _scaled_units(variance: Variance) -> Floats:
    """Return the variance's units, scaled so that their squares add up to its value."""
    units = _units(variance)
    return units * math.sqrt(variance.value / float(units @ units))


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return Holm's adjusted p-values of a family of tests by name; None does not count as a test."""
    tests = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, (p, name) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        adjusted[name] = largest
    return adjusted
