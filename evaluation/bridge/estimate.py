"""An estimate of a difference, with interval, p-value and MDE by Student's t, corrected for skewed values.

Intervals are Student's, corrected where the estimate is skewed (Hall, JRSS B 54, 1992). With s the
skewness of the estimate (third cumulant over the standard deviation cubed; the items' own over
sqrt(n)), the statistic T = (estimate - truth) / se is turned into

    g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6

which follows Student's t to the next order, as the bootstrap-t does, without random draws. Each
bound uses T or g(T), whichever gives the wider interval. Both increase everywhere, so intervals and
p-values agree.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from evaluation.metrics.differences import Differences
from evaluation.metrics.variance import Variance
from evaluation.settings.metric import LARGEST

CONFIDENCE = 0.95

ALPHA = 1 - CONFIDENCE

POWER = 0.8

_STRONG = 0.25
"""Skewness of an estimate beyond which more than the nominal share of intervals misses the truth."""


class PairCounts(NamedTuple):
    """Items that pass on our side alone, on theirs alone, and all items."""

    wins: int
    losses: int
    n: int


class Link(NamedTuple):
    """A rising function from one difference to another: factor * x, or factor * (exp(x) - 1)."""

    name: Literal["linear", "exp"]
    factor: float

    def at(self, x: float | None) -> float | None:
        """Return the function's value; None where there is none, or no float can hold it."""
        if x is None or (self.name == "exp" and x > LARGEST):
            return None
        return self.factor * (x if self.name == "linear" else math.expm1(x))

    def slope(self, x: float) -> float:
        """Return the function's derivative."""
        return self.factor * (1.0 if self.name == "linear" else math.exp(min(x, LARGEST)))


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A difference; what cannot be known is None, and `note` states why.

    `units` is the number of independent items or clusters. `df` None means the normal distribution.
    `p` is two-sided, of no difference. `mde` is the smallest true difference that a test at ALPHA
    detects with probability POWER. `skew` is the estimate's own skewness. `counts` are given where
    the exact test is used, see `paired_binary`. `limit` is the largest size that a difference can have.
    `differences` and `variance`, and the `parts` of a mean with their `weights`, are used in means and
    to compare steps; `shares` are the parts' shares of the mean's variance. An estimate that follows
    from another one has it as `base`, with the `link` between the two.
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
    counts: PairCounts | None = None
    variance: Variance | None = field(default=None, repr=False, compare=False)
    parts: "Mapping[str, Estimate]" = field(default_factory=dict, repr=False, compare=False)
    weights: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    shares: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    differences: Differences | None = field(default=None, repr=False, compare=False)
    limit: float | None = None
    base: "Estimate | None" = field(default=None, repr=False, compare=False)
    link: Link | None = None

    @property
    def is_skewed(self) -> bool:
        """Whether few units and much skewness leave more errors than the interval allows for."""
        return self.counts is None and abs(self.skew) > _STRONG


def quantile(probability: float, df: float | None) -> float:
    """Return a quantile of Student's t, or for df None of the normal distribution."""
    return float(special.ndtri(probability) if df is None else special.stdtrit(df, probability))


def unknown(value: float, *, n: int, units: int, note: str) -> Estimate:
    """Return a difference whose interval and p-value are unknown, for the reason in `note`."""
    return Estimate(value=value, n=n, units=units, method="none", note=note)


def identical(*, n: int, differences: Differences | None = None) -> Estimate:
    """Return a difference of exactly 0, for sides with the same scores to the last digit on every item."""
    note = "both sides score the same on every item"
    estimate = Estimate(value=0.0, n=n, units=n, method="identical", se=0.0, low=0.0, high=0.0)
    layout = None if differences is None else differences.layout
    zeros = np.zeros(n if layout is None else layout.size)
    variance = Variance(zeros, None, n, max(1, n - 1), layout)
    return replace(estimate, p=1.0, note=note, variance=variance, differences=differences)


def derived(base: Estimate, link: Link) -> Estimate:
    """Return the difference that follows from another one by a link, with its interval, test and MDE."""
    value, slope = link.at(base.value), link.slope(base.value)
    variance = base.variance
    if variance is not None:
        dependent = None if variance.dependent is None else slope * variance.dependent
        variance = variance._replace(independent=slope * variance.independent, dependent=dependent)
    return replace(
        base,
        value=math.inf if value is None else value,
        se=None if base.se is None else slope * base.se,
        low=link.at(base.low),
        high=link.at(base.high),
        mde=link.at(base.mde),
        variance=variance,
        differences=None,
        base=base,
        link=link,
    )


UNDECIDABLE = "undecidable: the interval holds every possible difference"


def limited(estimate: Estimate, limit: float | None) -> Estimate:
    """Return an estimate whose interval and MDE are cut at the largest possible size of such a difference."""
    if limit is None or estimate.low is None or estimate.high is None:
        return replace(estimate, limit=limit)
    mde = None if estimate.mde is None else min(limit, estimate.mde)
    low, high = max(estimate.low, -limit), min(estimate.high, limit)
    note = UNDECIDABLE if (low, high) == (-limit, limit) else estimate.note
    return replace(estimate, low=low, high=high, mde=mde, note=note, limit=limit)


def by_t(estimate: Estimate) -> Estimate:
    """Return an estimate with interval, p-value and MDE, by its `se`, `df` and `skew`."""
    low, high = interval_by_t(estimate, ALPHA)
    tails = [p_beyond_by_t(estimate, 0.0, above=above) for above in (True, False)]
    p, mde = min(1.0, 2 * min(tails)), detectable_by_t(estimate, ALPHA)
    return limited(replace(estimate, low=low, high=high, p=p, mde=mde), estimate.limit)


def detectable_by_t(estimate: Estimate, alpha: float) -> float:
    """Return the minimum detectable effect (MDE) by Student's t, corrected for skewness."""
    assert estimate.se is not None
    half, skew = quantile(1 - alpha / 2, estimate.df), estimate.skew
    furthest = max(_reach(half, skew), _reach(half, -skew))
    mde = (furthest + quantile(POWER, estimate.df)) * estimate.se
    return mde if estimate.limit is None else min(estimate.limit, mde)


def interval_by_t(estimate: Estimate, alpha: float) -> tuple[float, float]:
    """Return the interval of an estimate: on each side the wider of Student's and Hall's.

    Args:
        alpha: Error rate of the two-sided interval, one minus its confidence.
    """
    assert estimate.se is not None
    half = quantile(1 - alpha / 2, estimate.df)
    low = estimate.value - estimate.se * _reach(half, estimate.skew)
    return low, estimate.value + estimate.se * _reach(half, -estimate.skew)


def p_beyond_by_t(estimate: Estimate, bound: float, *, above: bool) -> float:
    """Return the one-sided p-value that the truth lies beyond a bound: the larger of Student's and Hall's.

    Args:
        above: Whether the claim is that it lies above; otherwise below.
    """
    assert estimate.se is not None
    distance = estimate.value - bound
    if estimate.se == 0:
        return float(distance <= 0 if above else distance >= 0)
    sign = 1 if above else -1
    t, skew = sign * distance / estimate.se, sign * estimate.skew
    t = min(t, t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6)
    return float(special.ndtr(-t) if estimate.df is None else special.stdtr(estimate.df, -t))


def _reach(x: float, skew: float) -> float:
    """Return the T for which the smaller of T and g(T) is x."""
    if abs(skew) < 1e-9:
        return x
    return max(x, float(3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1)))
