"""Paired differences with intervals, p-values and minimum detectable effects (MDE).

Every estimator is reduced to what each unit contributes to it, its influence u_i (they add up to
zero). Independent units give Var = n/(n-1) sum u_i^2; for a mean of d = a - b, u_i = (d_i - mean) / n.
Units that belong together are in `metrics.variance`, ratios over neighbouring blocks of text in
`text_blocks`, items that pass or fail in `paired_binary`.
Intervals are those of `skewed_t`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import ALPHA, Estimate, identical, unknown
from evaluation.bridge.skewed_t import by_t, skewness_of
from evaluation.metrics.variance import Floats, Variance, grouped_variance


def from_variance(value: float, variance: Variance, n: int, skew: float, method: str) -> Estimate:
    """Return an estimate by what its items contribute to it.

    Args:
        value: The difference.
        variance: Its variance, and the items' contributions.
        n: Items that it is over.
        skew: Skewness of the estimate.
        method: Name of the method, for tables.

    Returns:
        An estimate by Student's t; without interval where the contributions do not differ.
    """
    se = math.sqrt(variance.value)
    if se <= 1e-12 * abs(value) or se == 0.0:
        same = "both sides score the same on every item" if value == 0 else "all items differ alike"
        note = f"no interval: {same}, so its variance is not known"
        return unknown(value, n=n, units=variance.units, note=note)
    known = Estimate(value=value, n=n, units=variance.units, method=method, se=se, df=variance.df)
    return by_t(replace(known, skew=skew, variance=variance))


def paired_mean(
    ours: Floats,
    theirs: Floats,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Estimate:
    """Return the mean paired difference over the same items.

    Args:
        ours: Values of our side, shape (n,).
        theirs: Values of the other side, in the same order.
        clusters: Cluster of each item; None if items are independent.
        strata: Stratum of each item; None without strata.

    Returns:
        The mean of ours - theirs, in the unit of the values.
    """
    difference = ours - theirs
    n, value = len(difference), float(difference.mean())
    if n < 2 or (clusters is not None and len(set(clusters)) < 2):
        only = "one item" if n == 1 else f"all {n} items belong to one cluster"
        return unknown(
            value, n=n, units=1, note=f"no interval: {only}, so its variance is not known"
        )
    variance = grouped_variance((difference - value) / n, clusters, strata)
    units = variance.independent if variance.dependent is None else variance.dependent
    method = "paired t" + (", clustered" if clusters is not None else "")
    method += ", stratified" if strata is not None else ""
    return from_variance(value, variance, n, skewness_of(units, variance.value), method)


def paired_measure(
    ours: Floats,
    theirs: Floats,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Estimate:
    """Return the mean paired difference of a measure of any size.

    Equal values on every item are no difference, as they are no coincidence.

    Args:
        ours: Values of our side, shape (n,).
        theirs: Values of the other side, in the same order.
        clusters: Cluster of each item; None if items are independent.
        strata: Stratum of each item; None without strata.

    Returns:
        The mean of ours - theirs; `identical` where values are equal on every one of several items.
    """
    if len(ours) > 1 and np.array_equal(ours, theirs):
        return identical(n=len(ours))
    return paired_mean(ours, theirs, clusters, strata)


def tested_by(estimate: Estimate, test: Estimate) -> Estimate:
    """Return an estimate with the p-value of another one, which tests no difference in its place.

    Args:
        estimate: A difference, such as that of perplexities.
        test: Difference of the same items whose test holds for both, such as that of nats.

    Returns:
        The estimate; its interval includes zero where the test does not reject, else excludes it.
    """
    low, high = estimate.low, estimate.high
    if low is None or high is None or test.p is None:
        return replace(estimate, p=test.p)
    if test.p >= ALPHA:
        low, high = min(low, 0.0), max(high, 0.0)
    elif test.value > 0:
        low = max(low, math.nextafter(0.0, 1.0))
    else:
        high = min(high, math.nextafter(0.0, -1.0))
    return replace(estimate, p=test.p, low=low, high=high)


def macro_mean(
    parts: Mapping[str, Estimate],
    value: float | None = None,
    weights: Mapping[str, float] | None = None,
) -> Estimate:
    """Return the weighted mean of independent estimates: SE = sqrt(sum (w_k SE_k)^2).

    Degrees of freedom by Welch and Satterthwaite. One part is its own mean.

    Args:
        parts: Estimates by item.
        value: Difference in place of the mean, where the whole is not exactly it (an overall
            perplexity).
        weights: Weight of each part, which add up to 1; None weighs all alike.

    Returns:
        The mean with its parts and weights; without interval if a part has none.
    """
    weights = weights or dict.fromkeys(parts, 1 / len(parts))
    return replace(_macro_mean(parts, value, weights), weights=weights)


def _macro_mean(
    parts: Mapping[str, Estimate], value: float | None, weights: Mapping[str, float]
) -> Estimate:
    estimates = list(parts.values())
    if len(estimates) == 1 and value is None:
        return replace(estimates[0], parts=parts)
    if value is None:
        value = math.fsum(weights[name] * part.value for name, part in parts.items())
    n, units = sum(part.n for part in estimates), sum(part.units for part in estimates)
    variances = [
        (weights[name] * part.se) ** 2 for name, part in parts.items() if part.se is not None
    ]
    if len(variances) < len(estimates):
        name = next(name for name, part in parts.items() if part.se is None)
        note = (parts[name].note or "no interval").removeprefix("no interval: ")
        return unknown(value, n=n, units=units, note=f"no interval: {name}: {note}")
    if not any(variances):
        return replace(identical(n=n), parts=parts)
    pairs = list(zip(estimates, variances, strict=True))
    weight = sum(variance**2 / part.df for part, variance in pairs if part.df)
    df, se = sum(variances) ** 2 / weight if weight else None, math.sqrt(sum(variances))
    skew = sum(part.skew * variance**1.5 for part, variance in pairs) / se**3
    whole = Estimate(value=value, n=n, units=units, method=f"mean of {len(parts)}", se=se, df=df)
    return by_t(replace(whole, skew=skew, parts=parts))


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return Holm's adjusted p-values.

    Args:
        p_values: P-values of a family of tests, by name; those that are None are no tests.

    Returns:
        Adjusted p-values by the same names; None stays None.
    """
    tests = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, (p, name) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        adjusted[name] = largest
    return adjusted
