"""Paired differences with intervals, p-values and the smallest effect they could have shown.

Every estimator here is reduced to what each unit contributes to it, its influence u_i (they add up
to zero). Independent units give Var = n/(n-1) sum u_i^2, and units that belong together are added
up first (Miller, "Adding error bars to evals", arXiv 2411.00640, which has the mean's formulas):

    mean of d = a - b            u_i = (d_i - mean) / n
    ratio R = sum d / sum w      u_i = (d_i - R w_i) / sum w
    exp(A) - exp(B), A and B     u_i = exp(A) (a_i - A w_i) / sum w - exp(B) (b_i - B w_i) / sum w
      both such ratios           (delta method; a and b stay paired, so their covariance counts)

Neighbouring blocks of packed text may hold parts of one document. With `serial`, covariances of
units up to L apart are added with Bartlett's weights (Newey and West, 1987), L = 4 (n/100)^(2/9),
and the variance is never taken below that of independent units.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.grading.errors_of_means import cluster_sums, standard_error

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A difference; what cannot be known is None, and `note` says why.

    `units` counts what is independent: items, or clusters. `df` None stands for the normal
    distribution. `p` is two-sided, of no difference. `mde` is the smallest true difference that a
    test at ALPHA would have found with probability POWER.
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


def quantile(probability: float, df: float | None) -> float:
    """Quantile of Student's t, or of the normal distribution for df None."""
    return float(special.ndtri(probability) if df is None else special.stdtrit(df, probability))


def upper_tail(z: float, df: float | None) -> float:
    return float(special.ndtr(-z) if df is None else special.stdtr(df, -z))


def unknown(value: float, *, n: int, units: int, note: str) -> Estimate:
    """A difference of which no more can be said."""
    return Estimate(value=value, n=n, units=units, method="none", note=note)


def from_standard_error(
    value: float, se: float, df: float | None, *, n: int, units: int, method: str
) -> Estimate:
    """Interval, p-value and smallest detectable effect by Student's t (or the normal)."""
    half = quantile(1 - ALPHA / 2, df) * se
    return Estimate(
        value=value,
        n=n,
        units=units,
        method=method,
        se=se,
        df=df,
        low=value - half,
        high=value + half,
        p=2 * upper_tail(abs(value) / se, df),
        mde=half + quantile(POWER, df) * se,
    )


def from_influence(
    value: float,
    influence: Floats,
    *,
    clusters: Sequence[str] | None = None,
    serial: bool = False,
    method: str,
) -> Estimate:
    """An estimate from what each item contributes to it; `clusters` names each item's group."""
    n = len(influence)
    if clusters is not None:
        influence = cluster_sums(influence, clusters)
        method = f"{method}, clustered"
    units = len(influence)
    if units < 2:
        only = "one item" if n == 1 else f"all {n} items belong to one cluster"
        return unknown(value, n=n, units=units, note=f"no interval: {only}, so no spread is seen")
    variance = _serial_variance(influence) if serial else float(influence @ influence)
    se = standard_error(variance, units)
    if se <= 1e-12 * abs(value) or se == 0.0:
        same = "both sides score the same on every item" if value == 0 else "all items differ alike"
        return unknown(value, n=n, units=units, note=f"no interval: {same}, so no spread is seen")
    return from_standard_error(value, se, units - 1, n=n, units=units, method=method)


def _serial_variance(influence: Floats) -> float:
    n = len(influence)
    plain = float(influence @ influence)
    lags = min(int(4 * (n / 100) ** (2 / 9)), n // 4)
    extra = sum(
        2 * (1 - lag / (lags + 1)) * float(influence[lag:] @ influence[:-lag])
        for lag in range(1, lags + 1)
    )
    return max(plain, plain + extra)


def paired_mean(ours: Floats, theirs: Floats, clusters: Sequence[str] | None = None) -> Estimate:
    """Mean of ours - theirs over the same items; (n,) each."""
    difference = ours - theirs
    value = float(difference.mean())
    influence = (difference - value) / len(difference)
    return from_influence(value, influence, clusters=clusters, method="paired t")


def paired_ratio(
    ours: Floats, theirs: Floats, weights: Floats, clusters: Sequence[str] | None = None
) -> Estimate:
    """sum(ours - theirs) / sum(weights), e.g. nats over tokens; units in the text's order.

    Units may differ in weight, as blocks do in scored tokens. For bits per byte the weights are
    bytes times ln 2.
    """
    value = float((ours - theirs).sum() / weights.sum())
    influence = ratio_influence(ours - theirs, weights)
    return from_influence(
        value, influence, clusters=clusters, serial=clusters is None, method="paired ratio, t"
    )


def ratio_influence(amounts: Floats, weights: Floats) -> Floats:
    total = weights.sum()
    influence: Floats = (amounts - amounts.sum() / total * weights) / total
    return influence


def exponential_influence(
    ours: Floats, theirs: Floats, weights: Floats, scale_ours: float, scale_theirs: float
) -> Floats:
    """What each unit contributes to exp(A) - exp(B) where the scales are exp(A) and exp(B)."""
    influence: Floats = scale_ours * ratio_influence(ours, weights)
    influence -= scale_theirs * ratio_influence(theirs, weights)
    return influence


def paired_perplexity(
    ours: Floats, theirs: Floats, tokens: Floats, clusters: Sequence[str] | None = None
) -> Estimate:
    """ppl_ours - ppl_theirs from the nats and scored tokens of the same blocks."""
    scale_ours = math.exp(ours.sum() / tokens.sum())
    scale_theirs = math.exp(theirs.sum() / tokens.sum())
    influence = exponential_influence(ours, theirs, tokens, scale_ours, scale_theirs)
    return from_influence(
        scale_ours - scale_theirs,
        influence,
        clusters=clusters,
        serial=clusters is None,
        method="paired ratio, delta method, t",
    )


def macro_mean(parts: Mapping[str, Estimate], value: float | None = None) -> Estimate:
    """Unweighted mean of independent estimates: SE = sqrt(sum SE_k^2) / K.

    Degrees of freedom by Welch and Satterthwaite. One part is its own mean. `value` replaces the
    mean where the whole is not exactly it (an overall perplexity).
    """
    estimates = list(parts.values())
    if len(estimates) == 1 and value is None:
        return estimates[0]
    value = math.fsum(part.value for part in estimates) / len(estimates) if value is None else value
    n, units = sum(part.n for part in estimates), sum(part.units for part in estimates)
    variances = [None if part.se is None else (part.se / len(estimates)) ** 2 for part in estimates]
    known = [variance for variance in variances if variance is not None]
    if len(known) < len(estimates):
        name = next(name for name, part in parts.items() if part.se is None)
        note = (parts[name].note or "no interval").removeprefix("no interval: ")
        return unknown(value, n=n, units=units, note=f"no interval: {name}: {note}")
    weight = sum(
        variance**2 / part.df for part, variance in zip(estimates, known, strict=True) if part.df
    )
    df = sum(known) ** 2 / weight if weight else None
    se = math.sqrt(sum(known))
    return from_standard_error(value, se, df, n=n, units=units, method=f"mean of {len(parts)}")


def p_beyond(estimate: Estimate, bound: float, *, above: bool) -> float | None:
    """One-sided p-value of the claim that the true difference lies above (or below) `bound`."""
    if estimate.se is None:
        return None
    distance = estimate.value - bound if above else bound - estimate.value
    return upper_tail(distance / estimate.se, estimate.df)


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's adjusted p-values; those that are None are no tests and stay None."""
    tests = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, (p, name) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        adjusted[name] = largest
    return adjusted
