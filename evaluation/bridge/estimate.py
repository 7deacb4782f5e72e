"""Estimates of differences: value, interval, p-value and MDE; means of several.

An estimate is its value and the influence of each group of units on it (`metrics.variance`): the variance
is the sum of their squares, so that a mean over tasks and the covariance of steps are linear in them. In a
mean, influences add up by group, so a question that several tasks ask counts once; degrees of freedom are
Satterthwaite's (Biometrics Bulletin 2, 1946), at most groups - 1 where groups are shared.

Intervals by Student's t are corrected where the estimate is skewed (Hall, JRSS B 54, 1992). With s the
skewness of the estimate (third cumulant over the standard deviation cubed), T = (estimate - truth) / se
becomes

    g(T) = T + s T^2 / 3 + s^2 T^3 / 27 + s / 6

which follows Student's t to the next order. Each bound uses the wider of T's and g(T)'s. s is that of the
units times SKEWED, as few units show less than there is. Both increase, so intervals and p-values agree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from evaluation.bridge.differences import Paired
from evaluation.bridge.exact_tests import PairCounts
from evaluation.metrics.variance import Spread, cubes
from evaluation.settings.metric import LARGEST

CONFIDENCE = 0.95

ALPHA = 1 - CONFIDENCE

POWER = 0.8

SKEWED = 1.5


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A difference; what cannot be known is None, and `note` states why.

    `p` is two-sided, of no difference. `mde` is the smallest true difference that a test at ALPHA detects
    with probability POWER. `third` is the third cumulant. `counts` are given where the exact test is used.
    `limit` is the largest size that a difference can have. A mean has `parts` and their `weights`, others
    `paired`.
    """

    value: float
    n: int
    units: int
    method: str
    se: float | None = None
    df: float = math.inf
    third: float = 0.0
    low: float | None = None
    high: float | None = None
    p: float | None = None
    mde: float | None = None
    note: str | None = None
    counts: PairCounts | None = None
    limit: float = math.inf
    paired: Paired | None = field(default=None, repr=False, compare=False)
    spread: Spread | None = field(default=None, repr=False, compare=False)
    parts: "Mapping[str, Estimate]" = field(default_factory=dict, repr=False, compare=False)
    weights: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def skew(self) -> float:
        """The skewness that intervals allow for."""
        return 0.0 if not self.se or self.counts else SKEWED * self.third / self.se**3

    def leaves(self, name: str) -> "Mapping[str, tuple[float, Estimate]]":
        """Return weight and estimate of each item that it is the mean of; `name` is that of a single one."""
        if not self.parts:
            return {name: (1.0, self)}
        return {part: (self.weights[part], term) for part, term in self.parts.items()}


def quantile(probability: float, df: float) -> float:
    """Return a quantile of Student's t; that of the normal distribution for infinitely many."""
    is_normal = math.isinf(df)
    return float(special.ndtri(probability) if is_normal else special.stdtrit(df, probability))


def unknown(value: float, *, n: int, units: int, note: str) -> Estimate:
    """Return a difference whose interval and p-value are unknown, for the reason in `note`."""
    return Estimate(value=value, n=n, units=units, method="none", note=note)


def identical(n: int, paired: Paired | None = None) -> Estimate:
    """Return a difference of exactly 0."""
    sure = Estimate(value=0.0, n=n, units=n, method="identical", se=0.0, low=0.0, high=0.0, p=1.0)
    return replace(sure, note="both sides score the same on every item", paired=paired)


def at_alpha(estimate: Estimate, alpha: float) -> Estimate:
    """Return the same estimate with the interval, if it has one, and the MDE of an error rate.

    At ALPHA it also gets its p-value. The interval is cut at the largest possible difference.
    """
    if not estimate.se:
        return estimate
    if estimate.counts is not None:
        low, high = estimate.counts.interval(alpha)
    else:
        reach = quantile(1 - alpha / 2, estimate.df)
        low = estimate.value - estimate.se * _reach(reach, estimate.skew)
        high = estimate.value + estimate.se * _reach(reach, -estimate.skew)
    p = min(1.0, 2 * min(p_beyond(estimate, 0.0, above=above) or 0.0 for above in (True, False)))
    limit = estimate.limit
    low, high = max(low, -limit), min(high, limit)
    is_open = (low, high) == (-limit, limit)
    note = "undecidable: the interval holds every possible difference" if is_open else estimate.note
    mde = detectable(estimate, alpha)
    return replace(estimate, low=low, high=high, p=p, mde=mde, note=note)


def detectable(estimate: Estimate, alpha: float) -> float | None:
    """Return the minimum detectable effect (MDE): half the interval's width, and what POWER adds.

    For the exact test it is at least the d for which so many of n items change in one direction that the
    test can reject: P(Binomial(n, d) >= k) = POWER, with k the smallest for which 2 * 0.5^k < alpha.
    """
    if not estimate.se:
        return None
    if estimate.counts is None:
        half = quantile(1 - alpha / 2, estimate.df)
        furthest = max(_reach(half, estimate.skew), _reach(half, -estimate.skew))
        mde = (furthest + quantile(POWER, estimate.df)) * estimate.se
        return min(estimate.limit, mde)
    n, fewest = estimate.counts.n, math.floor(1 - math.log2(alpha)) + 1
    if n < fewest:
        return None
    low, high = estimate.counts.interval(alpha)
    z = quantile(1 - alpha / 2, math.inf)
    by_score = (high - low) / 2 * (1 + quantile(POWER, math.inf) / z)
    return min(1.0, max(by_score, float(special.betaincinv(fewest, n - fewest + 1, POWER))))


def p_beyond(estimate: Estimate, bound: float, *, above: bool) -> float | None:
    """Return the one-sided p-value that the truth lies above a bound, else below; None without an error."""
    if estimate.se is None:
        return None
    distance = estimate.value - bound
    if estimate.se == 0:
        return float(distance <= 0 if above else distance >= 0)
    if estimate.counts is not None:
        return estimate.counts.beyond(bound, above=above)
    sign = 1 if above else -1
    t, skew = sign * distance / estimate.se, sign * estimate.skew
    t = min(t, t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6)
    is_normal = math.isinf(estimate.df)
    return float(special.ndtr(-t) if is_normal else special.stdtr(estimate.df, -t))


def _reach(x: float, skew: float) -> float:
    """Return the T for which the smaller of T and g(T) is x."""
    if abs(skew) < 1e-9:
        return x
    return max(x, float(3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1)))


def scaled(base: Estimate, factor: float) -> Estimate:
    """Return the difference in another unit, which is one hypothesis with the base."""
    known = {name: getattr(base, name) for name in ("value", "se", "low", "high", "mde")}
    times: dict[str, Any] = {name: x and factor * x for name, x in known.items()}
    spreading = base.spread and base.spread._replace(influence=factor * base.spread.influence)
    return replace(base, **times, third=factor**3 * base.third, spread=spreading, paired=None)


def exponential(base: Estimate, theirs: float) -> Estimate:
    """Return the difference of exponentials of two values, of which `theirs` is the other side's."""
    known = {name: getattr(base, name) for name in ("value", "low", "high", "mde")}
    of_base: dict[str, Any] = {
        name: None if x is None or x > LARGEST else theirs * math.expm1(x)
        for name, x in known.items()
    }
    of_base["value"] = math.inf if of_base["value"] is None else of_base["value"]
    se = None if base.se is None else theirs * base.se
    return replace(base, **of_base, se=se, spread=None, paired=None, parts={}, weights={})


def mean(parts: Mapping[str, Estimate], weights: Mapping[str, float] | None = None) -> Estimate:
    """Return the weighted mean of estimates, equally if not given; without interval if a part has none."""
    weights = weights or dict.fromkeys(parts, 1 / len(parts))
    estimates = [*parts.values()]
    if len(estimates) == 1 and set(weights.values()) == {1.0}:
        return replace(estimates[0], parts=parts, weights=weights)
    shares = [weights[name] for name in parts]
    value = math.fsum(w * term.value for w, term in zip(shares, estimates, strict=True))
    n, units = (sum(getattr(term, key) for term in estimates) for key in ("n", "units"))
    lacking = next((name for name, term in parts.items() if term.se is None), None)
    if lacking is not None:
        why = (parts[lacking].note or "no interval").removeprefix("no interval: ")
        return unknown(value, n=n, units=units, note=f"no interval: {lacking}: {why}")
    if not any(term.se for term in estimates):
        return replace(identical(n), parts=parts, weights=weights)
    variance, third, df = _of_parts(estimates, shares)
    limits = {term.limit for term in estimates}
    whole = Estimate(value=value, n=n, units=units, method=f"mean of {len(parts)}", df=df)
    whole = replace(whole, se=math.sqrt(variance), third=third, parts=parts, weights=weights)
    limit = limits.pop() * max(1.0, math.fsum(shares)) if len(limits) == 1 else math.inf
    return at_alpha(replace(whole, limit=limit), ALPHA)


def _of_parts(estimates: Sequence[Estimate], shares: Sequence[float]) -> tuple[float, float, float]:
    """Return variance, third cumulant and degrees of freedom of a mean."""
    own = [(w * (term.se or 0.0)) ** 2 for w, term in zip(shares, estimates, strict=True)]
    errors = math.fsum(v * v / term.df for v, term in zip(own, estimates, strict=True))
    df = max(1.0, sum(own) ** 2 / errors) if errors else math.inf
    third = math.fsum(w**3 * term.third for w, term in zip(shares, estimates, strict=True))
    variance = math.fsum(own)
    joint = [
        (w, term.spread)
        for w, term in zip(shares, estimates, strict=True)
        if term.spread is not None and (term.paired is None or term.paired.groups.shared)
    ]
    if len(joint) < 2:
        return variance, third, df
    labels = np.concatenate([part.labels for _, part in joint])
    sums = np.bincount(labels, np.concatenate([w * part.influence for w, part in joint]))
    variance += float(sums @ sums) - math.fsum((w * part.error) ** 2 for w, part in joint)
    skewed = np.concatenate([w * part.influence * bool(part.third) for w, part in joint])
    third += cubes(np.bincount(labels, skewed).astype(np.float64))
    third -= math.fsum(w**3 * cubes(part.influence) for w, part in joint if part.third)
    groups = len(np.unique(labels)) + sum(term.units for term in estimates)
    groups -= sum(len(part.labels) for _, part in joint)
    return max(variance, 1e-9 * math.fsum(own)), third, min(df, max(1.0, groups - 1.0))
