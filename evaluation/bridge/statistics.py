"""Paired differences of means, ratios and perplexities, with intervals, p-values and MDE.

Every estimator is reduced to the influence u_i of each unit, its contribution to the estimate (they add
up to zero). Independent units give Var = n/(n-1) sum u_i^2:

    mean of d = a - b            u_i = (d_i - mean) / n
    ratio R = sum d / sum w      u_i = (d_i - R w_i) / sum w
    exp(A) - exp(B), A and B     u_i = exp(A) (a_i - A w_i) / sum w - exp(B) (b_i - B w_i) / sum w
      both such ratios           (delta method; a and b stay paired, so their covariance counts)

`metrics.variance` covers units in clusters and strata, `metrics.serial_dependence` neighbouring blocks
of text, whose order counts, and `paired_binary` items that pass or fail.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import ALPHA, Estimate, by_t, identical, unknown
from evaluation.metrics.serial_dependence import ratio_influence, serial_variance
from evaluation.metrics.variance import Floats, Variance, grouped_variance

_FEWEST = 20
"""Fewest blocks, or batches of them, from which skewness is estimated."""


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
        return _without_variance(value, n, only)
    variance = grouped_variance((difference - value) / n, clusters, strata)
    method = "paired t" + (", clustered" if clusters is not None else "")
    method += ", stratified" if strata is not None else ""
    skew = _skewness(_units(variance), variance.value)
    return _from_variance(value, variance, n, skew, method)


def paired_measure(
    ours: Floats,
    theirs: Floats,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Estimate:
    """Return the mean paired difference of a real-valued measure.

    Values that are equal on every item are no coincidence, so the sides count as identical.

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


def paired_ratio(ours: Floats, theirs: Floats, weights: Floats) -> Estimate:
    """Return the difference of two ratios with one denominator, such as nats per token.

    Args:
        ours: Nats of our side by block, shape (blocks,), in the text's order.
        theirs: Nats of the other side for the same blocks.
        weights: Denominator by block: tokens, or bytes times ln 2 for bits per byte.

    Returns:
        sum(ours - theirs) / sum(weights).
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    value = float((ours - theirs).sum() / weights.sum())
    return _from_blocks(value, ratio_influence(ours - theirs, weights), "paired ratio, t")


def paired_perplexity(
    ours: Floats,
    theirs: Floats,
    tokens: Floats,
    scales: tuple[float, float] | None = None,
) -> Estimate:
    """Return the difference of two perplexities over the same blocks.

    Args:
        ours: Nats of our side by block, shape (blocks,), in the text's order.
        theirs: Nats of the other side for the same blocks.
        tokens: Scored tokens by block.
        scales: Perplexities of both sides that the blocks contribute to; None for the blocks' own.

    Returns:
        ppl_ours - ppl_theirs of these blocks.
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    own = tuple(math.exp(nats.sum() / tokens.sum()) for nats in (ours, theirs))
    scale_ours, scale_theirs = scales or own
    influence = scale_ours * ratio_influence(ours, tokens)
    influence -= scale_theirs * ratio_influence(theirs, tokens)
    return _from_blocks(own[0] - own[1], influence, "paired ratio, delta method, t")


def _from_blocks(value: float, influence: Floats, method: str) -> Estimate:
    n = len(influence)
    if n < 2:
        return _without_variance(value, n, "one item")
    variance = serial_variance(influence)
    return _from_variance(value, variance, n, _batch_skewness(influence, variance), method)


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
    known = Estimate(value=value, n=n, units=variance.units, method=method, se=se, df=variance.df)
    return by_t(replace(known, skew=skew, variance=variance))


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
    """Return the difference of estimates from two samples; degrees of freedom by Welch.

    Args:
        ours: Estimate of our side.
        theirs: Estimate of the other side, of independent units.

    Returns:
        ours - theirs; without interval where one of them has none.
    """
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
    known = Estimate(value=value, n=n, units=units, method="two samples, t (Welch)", df=df)
    variance = Variance(independent, dependent, units, df)
    return by_t(replace(known, se=math.sqrt(total), skew=third / total**1.5, variance=variance))


def _scaled_units(variance: Variance) -> Floats:
    """Return the variance's units, scaled so that their squares add up to its value."""
    units = _units(variance)
    return units * math.sqrt(variance.value / float(units @ units))


def macro_mean(
    parts: Mapping[str, Estimate],
    value: float | None = None,
    weights: Mapping[str, float] | None = None,
) -> Estimate:
    """Return the weighted mean of independent estimates: SE = sqrt(sum (w_k SE_k)^2).

    Degrees of freedom by Welch and Satterthwaite. One part is its own mean.

    Args:
        parts: Estimates by item.
        value: Difference to use in place of the mean (for an overall perplexity).
        weights: Weight of each part, which add up to 1; None weighs all parts equally.

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
    lacking = next((name for name, part in parts.items() if part.se is None), None)
    if lacking is not None:
        note = (parts[lacking].note or "no interval").removeprefix("no interval: ")
        return unknown(value, n=n, units=units, note=f"no interval: {lacking}: {note}")
    variances = [(weights[name] * (part.se or 0.0)) ** 2 for name, part in parts.items()]
    if not any(variances):
        return replace(identical(n=n), parts=parts)
    pairs = list(zip(estimates, variances, strict=True))
    weight = sum(variance**2 / part.df for part, variance in pairs if part.df)
    df, se = sum(variances) ** 2 / weight if weight else None, math.sqrt(sum(variances))
    skew = sum(part.skew * variance**1.5 for part, variance in pairs) / se**3
    whole = Estimate(value=value, n=n, units=units, method=f"mean of {len(parts)}", se=se, df=df)
    return by_t(replace(whole, skew=skew, parts=parts))


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


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return Holm's adjusted p-values.

    Args:
        p_values: P-values of a family of tests, by name; None does not count as a test.

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
