"""Variance of a mean over items in clusters or strata.

    cluster    groups that were sampled, e.g. the passages that questions are about. Another sample would
               have other groups, so their sums vary: Var = G/(G-1) sum_c (sum_i u_i)^2; those that have
               items in several strata vary as a whole, without the strata's means (Miller, "Adding
               error bars to evals", arXiv 2411.00640)
    stratum    groups of a fixed list, e.g. MMLU's subjects. Another sample would have the same groups,
               so only variation within them counts: Var = sum_h n_h/(n_h-1) sum_i (u_i - u_h)^2,
               which is sum_h (n_h/n)^2 s_h^2/n_h for a mean

u_i is what an item contributes to the estimate, its influence, and u_h its mean in the stratum. Few
clusters that agree by chance must not make a mean look surer than independent items would.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.metrics.layout import Labels, Layout

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Confidence of two-sided intervals."""


class Variance(NamedTuple):
    """The variance of an estimate, as influences scaled so that their squares add up to it.

    `independent` (items,) treats items as independent; `dependent` (units,) respects their dependence,
    and is None without any. `units` is the number of independent units, `df` the degrees of freedom.
    `layout` has the groups of the items, where these may be those of another estimate, too.
    """

    independent: Floats
    dependent: Floats | None
    units: int
    df: float
    layout: Layout | None = None

    @property
    def value(self) -> float:
        """The variance; never below that of independent items."""
        plain = float(self.independent @ self.independent)
        return (
            plain if self.dependent is None else max(plain, float(self.dependent @ self.dependent))
        )


def wilson(rate: float, n: float, z: float | None = None) -> tuple[float, float]:
    """Return Wilson's interval of a rate of n trials, which also holds for 0 and 1 (JASA 22:209, 1927).

    Args:
        n: Number of independent trials, or of as many as have the rate's variance.
        z: Quantile; that of the normal distribution if not given.
    """
    z = float(special.ndtri((1 + LEVEL) / 2)) if z is None else z
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return 0.0 if rate <= 0 else max(0.0, centre - half), 1.0 if rate >= 1 else min(
        1.0, centre + half
    )


def influence_variance(influence: Floats, layout: Layout) -> Variance:
    """Return the variance of an estimate by its influences, whose items may be in clusters or strata.

    A stratum of one unit has no variance within it; such units are pooled into one stratum.
    """
    if layout.groups is None and layout.strata is None:
        n = len(influence)
        return Variance(influence * math.sqrt(n / (n - 1)), None, n, n - 1, layout)
    stratum = layout.stratum
    if stratum is None:
        stratum = np.zeros(len(influence), dtype=np.int64)
    inner, pooled, scale = _within(influence, stratum)
    independent = inner * scale
    if layout.groups is None:
        units, df = len(influence), len(influence) - len(np.unique(pooled))
        return Variance(independent, None, units, max(1, df), layout)
    dependent, fixed = _cluster_sums(inner, layout.groups, pooled)
    df = max(1, len(dependent) - fixed)
    return Variance(independent, dependent, len(dependent), df, layout)


def _cluster_sums(inner: Floats, groups: Labels, stratum: Labels) -> tuple[Floats, int]:
    """Return the sums of clusters, whose squares add up to the variance, and the number of strata.

    A cluster with items in several strata, such as one question at several lengths, varies as a whole.
    """
    sums = np.bincount(groups, weights=inner)
    of_unit = np.zeros(len(sums), dtype=np.int64)
    of_unit[groups] = stratum
    if (of_unit[groups] != stratum).any():
        of_unit[:] = 0
    return sums * _inflation(of_unit), len(np.unique(of_unit))


def _within(influence: Floats, stratum: Labels) -> tuple[Floats, Labels, Floats]:
    """Return influences minus their stratum's mean, strata with singletons pooled, and sqrt(n/(n-1))."""
    is_singleton = np.bincount(stratum)[stratum] == 1
    pooled = np.where(is_singleton, -1, stratum)
    pooled = np.unique(pooled, return_inverse=True)[1].astype(np.int64)
    means = np.bincount(pooled, weights=influence) / np.bincount(pooled)
    if len(means) == 1:
        means = np.zeros(1)  # the influences of a whole add up to zero, but for rounding
    return influence - means[pooled], pooled, _inflation(pooled)


def _inflation(group: Labels) -> Floats:
    sizes = np.bincount(group)[group].astype(np.float64)
    return np.sqrt(np.divide(sizes, sizes - 1, out=np.ones_like(sizes), where=sizes > 1))
