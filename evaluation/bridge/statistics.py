"""Paired differences with intervals, p-values and the smallest effect they could have shown.

Every estimator here is reduced to what each unit contributes to it, its influence u_i (they add up
to zero). Independent units give Var = n/(n-1) sum u_i^2:

    mean of d = a - b            u_i = (d_i - mean) / n

Ratios and perplexities are in `nats`. Units that belong together are in `metrics.spread`, neighbouring
blocks of packed text, which may hold parts of one document, in `serial`; skewed ones in `skewness`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from evaluation.bridge.serial import batch_skewness, serial_spread
from evaluation.bridge.skewness import STRONG, cautious, reach, unit_skewness
from evaluation.metrics.spread import Floats as Floats
from evaluation.metrics.spread import Spread, grouped_spread

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
POWER = 0.8


class Counts(NamedTuple):
    """Items that pass on our side alone, on theirs alone, and all items."""

    wins: int
    losses: int
    n: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A difference; what cannot be known is None, and `note` says why.

    `units` counts what is independent: items, or clusters. `df` None stands for the normal
    distribution. `p` is two-sided, of no difference. `mde` is the smallest true difference that a
    test at ALPHA would have found with probability POWER. `skew` is the estimate's own, see
    `skewness`; `counts` is there where the exact test holds, see `discordance`.
    `spread`, and `parts` of a mean, are kept for comparing steps.
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
    spread: Spread | None = field(default=None, repr=False, compare=False)
    parts: "Mapping[str, Estimate]" = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_skewed(self) -> bool:
        """Whether few units and much skewness leave more errors than the interval allows for."""
        return self.counts is None and abs(self.skew) > STRONG


def quantile(probability: float, df: float | None) -> float:
    """Quantile of Student's t, or of the normal distribution for df None."""
    return float(special.ndtri(probability) if df is None else special.stdtrit(df, probability))


def upper_tail(z: float, df: float | None) -> float:
    return float(special.ndtr(-z) if df is None else special.stdtr(df, -z))


def unknown(value: float, *, n: int, units: int, note: str) -> Estimate:
    """A difference of which no more can be said."""
    return Estimate(value=value, n=n, units=units, method="none", note=note)


def identical(*, n: int) -> Estimate:
    """The same scores to the last digit on every item: no difference, and no doubt about it."""
    note = "both sides score the same on every item"
    known = Estimate(value=0.0, n=n, units=n, method="identical", se=0.0, low=0.0, high=0.0)
    return replace(known, p=1.0, note=note, spread=Spread(np.zeros(n), None, n, max(1, n - 1)))


def from_standard_error(
    value: float,
    se: float,
    df: float | None,
    *,
    n: int,
    units: int,
    method: str,
    skew: float = 0.0,
    spread: Spread | None = None,
) -> Estimate:
    """Interval, p-value and smallest detectable effect by Student's t (or the normal), and Hall's."""
    known = Estimate(
        value=value, n=n, units=units, method=method, se=se, df=df, skew=skew, spread=spread
    )
    low, high = interval_by_t(known, ALPHA)
    above = p_beyond_by_t(known, 0.0, above=True)
    below = p_beyond_by_t(known, 0.0, above=False)
    p, mde = min(1.0, 2 * min(above, below)), detectable_by_t(known, ALPHA)
    return replace(known, low=low, high=high, p=p, mde=mde)


def detectable_by_t(estimate: Estimate, alpha: float) -> float:
    """The smallest true difference that a test at `alpha` finds with probability POWER."""
    assert estimate.se is not None
    half, skew = quantile(1 - alpha / 2, estimate.df), estimate.skew
    furthest = max(reach(half, skew), reach(half, -skew))
    return (furthest + quantile(POWER, estimate.df)) * estimate.se


def interval_by_t(estimate: Estimate, alpha: float) -> tuple[float, float]:
    """The interval of confidence 1 - alpha of an estimate with a standard error.

    On each side the wider of Student's and Hall's.
    """
    assert estimate.se is not None
    half = quantile(1 - alpha / 2, estimate.df)
    low = estimate.value - estimate.se * reach(half, estimate.skew)
    return low, estimate.value + estimate.se * reach(half, -estimate.skew)


def p_beyond_by_t(estimate: Estimate, bound: float, *, above: bool) -> float:
    """One-sided p-value of the claim that the true difference lies above (or below) `bound`."""
    assert estimate.se is not None
    distance = estimate.value - bound
    if estimate.se == 0:
        return float(distance <= 0 if above else distance >= 0)
    sign = 1 if above else -1
    t = cautious(sign * distance / estimate.se, sign * estimate.skew)
    return upper_tail(t, estimate.df)


def from_influence(
    value: float,
    influence: Floats,
    *,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
    serial: bool = False,
    method: str,
) -> Estimate:
    """An estimate from what each item contributes to it.

    `clusters` and `strata` name each item's group; `serial` are blocks in the text's order.
    """
    n = len(influence)
    if n < 2 or (clusters is not None and len(set(clusters)) < 2):
        only = "one item" if n == 1 else f"all {n} items belong to one cluster"
        return unknown(value, n=n, units=1, note=f"no interval: {only}, so no spread is seen")
    spread = serial_spread(influence) if serial else grouped_spread(influence, clusters, strata)
    se = math.sqrt(spread.variance)
    if se <= 1e-12 * abs(value) or se == 0.0:
        same = "both sides score the same on every item" if value == 0 else "all items differ alike"
        note = f"no interval: {same}, so no spread is seen"
        return unknown(value, n=n, units=spread.units, note=note)
    method += ", clustered" if clusters is not None else ""
    method += ", stratified" if strata is not None else ""
    skew = batch_skewness(influence, spread) if serial else unit_skewness(spread)
    return from_standard_error(
        value, se, spread.df, n=n, units=spread.units, method=method, skew=skew, spread=spread
    )


def paired_mean(
    ours: Floats,
    theirs: Floats,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Estimate:
    """Mean of ours - theirs over the same items; (n,) each."""
    difference = ours - theirs
    value = float(difference.mean())
    influence = (difference - value) / len(difference)
    return from_influence(value, influence, clusters=clusters, strata=strata, method="paired t")


def paired_companion(
    ours: Floats,
    theirs: Floats,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Estimate:
    """Mean of ours - theirs of a measure of any size; the same on every item is no difference."""
    if len(ours) > 1 and np.array_equal(ours, theirs):
        return identical(n=len(ours))
    return paired_mean(ours, theirs, clusters, strata)


def tested_by(estimate: Estimate, test: Estimate) -> Estimate:
    """Return an estimate whose hypothesis of no difference is the one that `test` is of.

    It takes over the p-value, and its interval says the same of zero as that.
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


def macro_mean(parts: Mapping[str, Estimate], value: float | None = None) -> Estimate:
    """Unweighted mean of independent estimates: SE = sqrt(sum SE_k^2) / K.

    Degrees of freedom by Welch and Satterthwaite. One part is its own mean. `value` replaces the
    mean where the whole is not exactly it (an overall perplexity).
    """
    estimates = list(parts.values())
    if len(estimates) == 1 and value is None:
        return replace(estimates[0], parts=parts)
    value = math.fsum(part.value for part in estimates) / len(estimates) if value is None else value
    n, units = sum(part.n for part in estimates), sum(part.units for part in estimates)
    variances = [None if part.se is None else (part.se / len(estimates)) ** 2 for part in estimates]
    known = [variance for variance in variances if variance is not None]
    if len(known) < len(estimates):
        name = next(name for name, part in parts.items() if part.se is None)
        note = (parts[name].note or "no interval").removeprefix("no interval: ")
        return unknown(value, n=n, units=units, note=f"no interval: {name}: {note}")
    if not any(known):
        return replace(identical(n=n), parts=parts)
    weight = sum(
        variance**2 / part.df for part, variance in zip(estimates, known, strict=True) if part.df
    )
    df = sum(known) ** 2 / weight if weight else None
    se = math.sqrt(sum(known))
    third = sum(part.skew * v**1.5 for part, v in zip(estimates, known, strict=True))
    method = f"mean of {len(parts)}"
    whole = from_standard_error(value, se, df, n=n, units=units, method=method, skew=third / se**3)
    return replace(whole, parts=parts)


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's adjusted p-values; those that are None are no tests and stay None."""
    tests = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, (p, name) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        adjusted[name] = largest
    return adjusted
