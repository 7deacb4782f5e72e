"""The variance of an estimate from what each unit contributes to it, and the intervals of levels.

Every estimator is reduced to influences u_i, which add up to zero: (d_i - mean) / n for a mean,
(d_i - R w_i) / sum w for a ratio R of sums. They are summed over groups and scaled so that the squares of
the sums are the variance:

    independent    Var = n/(n-1) sum u_i^2
    strata         a fixed list, so only variation within them counts: u_i minus their stratum's mean, times
                   sqrt(n_h/(n_h-1)); strata of one unit are pooled
    clusters       sampled groups: Var = G/(G-1) sum_c (sum_i u_i)^2 (Miller, arXiv 2411.00640), never below
                   that of independent units, as few clusters may agree by chance
    text           neighbouring blocks may hold parts of one document. The variance is the spectrum at
                   frequency zero: the mean square of the first cosine coefficients (Mueller, Journal of
                   Econometrics 141, 2007), with as many degrees of freedom; where independent blocks
                   would vary more, theirs. At most 16 and at least 4 cosines: more would take in
                   frequencies above those of long documents under noise. Fewer where the spectrum of an
                   AR(1) process falls by more than BIAS over them (Andrews, Econometrica 59, 1991). Its
                   carry is r1, or r2 / r1, where white noise lies over it
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.metrics.layout import Grouping, Labels, Layout

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Confidence of two-sided intervals."""

LEAST, MOST = 4, 16
"""Fewest and most cosines."""

BIAS = 0.05

_ALIKE = 1e-9
"""Scores that differ by less are alike, as is a probability of 1e-48 for some answers, 0 for others."""

_CARRY = 0.97
"""Largest carry from block to block."""


class Spread(NamedTuple):
    """Influences of groups: their squares add up to the variance; `third` is the third cumulant.

    `labels` are the groups' numbers, `units` their count, `df` the degrees of freedom.
    """

    influence: Floats
    labels: Labels
    units: int
    df: float
    third: float

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.linalg.norm(self.influence))


def spread(influence: Floats, groups: Grouping) -> Spread | None:
    """Return what the groups of units contribute; None for fewer than two units or groups."""
    n = len(influence)
    if n < 2:
        return None
    if groups.is_text:
        return _of_text(influence, groups.labels)
    inner, strata, scale = _within(influence, groups.strata)
    own = inner * scale
    count = 1 + int(strata.max())
    if not groups.repeats:
        return Spread(own, groups.labels, n, max(1, n - count), cubes(own))
    labels, place = np.unique(groups.labels, return_inverse=True)
    if len(labels) < 2:
        return None
    sums: Floats = np.bincount(place, inner).astype(np.float64)
    stratum = np.zeros(len(labels), dtype=np.int64)
    stratum[place] = strata
    if (stratum[place] != strata).any():  # one row in several strata varies as a whole
        stratum[:] = 0
    sums *= _inflation(stratum)
    plain = float(own @ own)
    if plain > float(sums @ sums):
        alike = float(sums @ sums) < 1e-12 * plain
        sums = np.ones(len(sums)) if alike else sums
        sums *= math.sqrt(plain / float(sums @ sums))
    df = max(1, len(labels) - len(np.unique(stratum)))
    return Spread(sums, labels, len(labels), df, cubes(sums))


def cubes(influence: Floats) -> float:
    """Return the sum of cubes; numpy's own power takes a hundred times as long."""
    return float(influence @ (influence * influence))


def _within(influence: Floats, strata: Labels | None) -> tuple[Floats, Labels, Floats]:
    """Return influences minus their stratum's mean, strata with singles pooled, and sqrt(n/(n-1))."""
    if strata is None:
        n = len(influence)
        return influence, np.zeros(n, dtype=np.int64), np.full(n, math.sqrt(n / (n - 1)))
    is_single = np.bincount(strata)[strata] == 1
    pooled = np.unique(np.where(is_single, -1, strata), return_inverse=True)[1].astype(np.int64)
    means = np.bincount(pooled, weights=influence) / np.bincount(pooled)
    return influence - means[pooled], pooled, _inflation(pooled)


def _inflation(group: Labels) -> Floats:
    sizes = np.bincount(group)[group].astype(np.float64)
    return np.sqrt(np.divide(sizes, sizes - 1, out=np.ones_like(sizes), where=sizes > 1))


def _of_text(influence: Floats, labels: Labels) -> Spread:
    """Return the contributions of blocks, scaled to the variance with their serial dependence."""
    n = len(influence)
    own = influence * math.sqrt(n / (n - 1))
    plain = float(own @ own)
    if n < 2 * LEAST or plain == 0:
        return Spread(own, labels, n, n - 1, 0.0)
    count = cosine_count(influence)
    coefficients = cosines(influence, count)
    dependent = float(coefficients @ coefficients)
    variance, df = (dependent, count) if dependent > plain else (plain, n - 1)
    scaled = own * math.sqrt(variance / plain)
    batches = np.add.reduceat(influence, np.arange(0, n, max(1, n // (2 * count))))
    batches = batches - batches.mean()
    skew = cubes(batches) / float(batches @ batches) ** 1.5
    return Spread(scaled, labels, n, df, skew * variance**1.5)


def cosine_count(influence: Floats) -> int:
    """Return the number of cosines over which the spectrum of an AR(1) process is nearly flat."""
    n = len(influence)
    r1, r2 = (float(influence[k:] @ influence[:-k] / (influence @ influence)) for k in (1, 2))
    carry = max(r1 + (1 + 3 * r1) / n, r2 / r1 if r1 > 2 / math.sqrt(n) else 0.0)
    carry = min(carry, _CARRY)
    if carry <= 0:
        return min(MOST, n // 2)
    curvature = 2 * carry / (1 - carry) ** 2
    return min(n // 2, MOST, max(LEAST, int(math.sqrt(6 * BIAS / curvature) * n / math.pi)))


def cosines(influence: Floats, count: int) -> Floats:
    """Return the first cosine coefficients of influences; their squares add up to the variance."""
    n = len(influence)
    angles = np.pi / n * np.outer(np.arange(1, count + 1), np.arange(n) + 0.5)
    coefficients: Floats = np.cos(angles) @ influence * math.sqrt(2 / count)
    return coefficients


def ratio_influence(amounts: Floats, weights: Floats) -> Floats:
    """Return what each block contributes to a ratio of sums, (blocks,); they add up to zero."""
    total = weights.sum()
    influence: Floats = (amounts - amounts.sum() / total * weights) / total
    return influence


class Interval(NamedTuple):
    """A mean over units; no standard error and bounds where the variance is not known."""

    value: float
    stderr: float | None
    low: float | None
    high: float | None


def wilson(rate: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of a rate of n trials, which also holds for 0 and 1 (JASA 22:209, 1927)."""
    z = float(special.ndtri((1 + LEVEL) / 2))
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate <= 0 else max(0.0, centre - half)
    return low, 1.0 if rate >= 1 else min(1.0, centre + half)


def interval(credit: Floats, groups: Grouping | None = None) -> Interval:
    """Return the mean credit, from 0 to 1, of units with its 95 % interval, all as fractions.

    Wilson's for independent units that pass or fail, else Student's t over their groups, cut at 0 and 1.
    """
    groups = groups or Layout(len(credit)).groups
    mean = float(credit.mean())
    spreading = spread((credit - mean) / len(credit), groups)
    if spreading is None:
        return Interval(mean, None, None, None)
    stderr = spreading.error if np.ptp(credit) > _ALIKE else None
    passes_or_fails = not groups.repeats and (np.minimum(credit, 1 - credit) < _ALIKE).all()
    if passes_or_fails or (stderr is None and mean in (0, 1)):
        return Interval(mean, stderr, *wilson(mean, spreading.units))
    if stderr is None:
        return Interval(mean, None, None, None)
    reach = float(special.stdtrit(spreading.df, (1 + LEVEL) / 2)) * stderr
    return Interval(mean, stderr, max(0.0, mean - reach), min(1.0, mean + reach))
