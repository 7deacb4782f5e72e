"""Paired differences with intervals, p-values and minimum detectable effects (MDE).

Every estimator is reduced to what each unit contributes to it, its influence u_i (they add up to
zero). Independent units give Var = n/(n-1) sum u_i^2; for a mean of d = a - b, u_i = (d_i - mean) / n.
Units that belong together are in `metrics.variance`, ratios over neighbouring blocks of text in
`text_blocks`, items that pass or fail in `paired_binary`.

Intervals are Student's, corrected where the estimate is skewed (Hall, JRSS B 54, 1992). With s the
skewness of the estimate (third cumulant over the standard deviation cubed; the items' own over
sqrt(n)), the statistic T = (estimate - truth) / se is turned into

    g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6

which follows Student's t to the next order, as the bootstrap-t does, without random draws. Each
bound is the wider of the two: T or g(T), whichever is nearer to no difference. Both rise everywhere,
so intervals and p-values agree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from evaluation.metrics.variance import Floats, Variance, grouped_variance

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
POWER = 0.8

STRONG = 0.25
"""Skewness of an estimate beyond which more than the nominal share of intervals misses the truth."""


class Counts(NamedTuple):
    """Items that pass on our side alone, on theirs alone, and all items."""

    wins: int
    losses: int
    n: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A difference; what cannot be known is None, and `note` states why.

    `units` counts what is independent: items, or clusters. `df` None stands for the normal
    distribution. `p` is two-sided, of no difference. `mde` is the smallest true difference that a
    test at ALPHA finds with probability POWER. `skew` is the estimate's own skewness; `counts` are
    there where the exact test holds, see `paired_binary`. `variance`, and `parts` of a mean with
    their `weights`, serve to compare steps.
    """

    value: float
    n: int
    units: int
    method: str
    se: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    mde: float | None = None
    note: str | None = None
    skew: float = 0.0
    counts: Counts | None = None
    variance: Variance | None = field(default=None, repr=False, compare=False)
    parts: "Mapping[str, Estimate]" = field(default_factory=dict, repr=False, compare=False)
    weights: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_skewed(self) -> bool:
        """Whether few units and much skewness leave more errors than the interval allows for."""
        return self.counts is None and abs(self.skew) > STRONG


def quantile(probability: float, df: float | None) -> float:
    """Return a quantile of Student's t or of the normal distribution.

    Args:
        probability: Probability of a smaller value.
        df: Degrees of freedom; None for the normal distribution.

    Returns:
        The value, in standard errors.
    """
    return float(special.ndtri(probability) if df is None else special.stdtrit(df, probability))


def upper_tail(z: float, df: float | None) -> float:
    """Return the probability of a larger value, by Student's t or the normal distribution.

    Args:
        z: A value, in standard errors.
        df: Degrees of freedom; None for the normal distribution.

    Returns:
        One-sided probability.
    """
    return float(special.ndtr(-z) if df is None else special.stdtr(df, -z))


def unknown(value: float, *, n: int, units: int, note: str) -> Estimate:
    """Return a difference of which no more is known.

    Args:
        value: The difference.
        n: Items that it is over.
        units: Items or clusters that are independent.
        note: Reason, for people.

    Returns:
        An estimate without interval.
    """
    return Estimate(value=value, n=n, units=units, method="none", note=note)


def identical(*, n: int) -> Estimate:
    """Return no difference, without doubt: the same scores to the last digit on every item.

    Args:
        n: Items that it is over.

    Returns:
        An estimate of 0 whose interval has no width.
    """
    note = "both sides score the same on every item"
    known = Estimate(value=0.0, n=n, units=n, method="identical", se=0.0, low=0.0, high=0.0)
    return replace(known, p=1.0, note=note, variance=Variance(np.zeros(n), None, n, max(1, n - 1)))


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
