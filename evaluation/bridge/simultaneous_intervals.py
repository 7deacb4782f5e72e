"""Simultaneous confidence intervals: what holds for several steps at once, as the best is chosen.

Steps are compared with one bridge over the same items, so their deltas are correlated, often
strongly. A multiplier bootstrap weighs the items at random and looks how far the deltas of all steps
move together; with normal weights, one vector for all steps, the sums that it draws are normal with
the covariance of the steps' influences, from which they are drawn here directly.

    alpha      of one interval, so that all steps' intervals hold together: from the chance that the
               largest |t| over the steps is beyond a limit (max-t). It is drawn given that one of
               them is beyond it, which holds for small chances, too (Owen, Maximov and Chertkov,
               Electronic Journal of Statistics 13, 2019): k p mean(1 / S), with p the chance of one
               of k steps and S how many are beyond the limit together
    interval   one that is to hold for several estimates at once is each one's own at that alpha, so
               that exact, skewed and ordinary ones go together
    behind     steps that are worse than some other one: all pairs, tested together by the largest
               |t| of a pair, again without the pairs that were rejected, until none is (Romano and
               Wolf, Econometrica 73, 2005). The steps that are left hold every best one with
               confidence, as in Hansen, Lunde and Nason's model confidence set (2011)

Draws depend on nothing but how many steps there are, so results can be repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.bridge.estimate import ALPHA, Estimate, quantile
from evaluation.metrics.variance import Floats, Variance

_ALPHA_DRAWS = 4_000
"""They give the chance of an alpha to about 1 % of itself, however small it is."""

_DRAWS, _MOST_DRAWS, _PAIRS_DRAWN = 10_000, 40_000, 10**7
"""Draws for a ranking: at least and at most; in between so many that this many pairs are drawn."""

_ROUNDS, _CLOSE = 8, 1e-3
"""Rounds of looking for an alpha, from that of Bonferroni on, and the share by which the last may change it."""

_SLACK = 2.0
"""Discordant items that are added to the variance of two steps' difference: with four that all turned
one way, or five, no exact test at 0.05 rejects, and with six it does."""


Leaves = Mapping[str, tuple[float, Variance | None]]
"""Weight and variance of each slice or task of an estimate."""


def leaves(estimate: Estimate, name: str) -> Leaves:
    """Return the slices or tasks that an estimate is the mean of.

    Args:
        estimate: A difference of one item or of a mean of items.
        name: What the estimate is called where it is of one item.

    Returns:
        Weight and variance of each, by name.
    """
    if not estimate.parts:
        return {name: (1.0, estimate.variance)}
    return {part: (estimate.weights[part], one.variance) for part, one in estimate.parts.items()}


def _covariance(columns: Sequence[Leaves]) -> Floats | None:
    """Return the covariance (columns, columns) of estimates; None if a variance is not known.

    Leaves of one name are over the same items. Blocks and clusters are taken for independent here:
    how they hang together is much the same in every step and leaves correlations as they are.
    """
    total = np.zeros((len(columns), len(columns)))
    for name in dict.fromkeys(name for column in columns for name in column):
        own = [i for i, column in enumerate(columns) if name in column]
        rows = []
        for i in own:
            weight, variance = columns[i][name]
            if variance is None:
                return None
            rows.append(weight * variance.independent)
        block = np.stack(rows)
        total[np.ix_(own, own)] += block @ block.T
    return total


def _draw(cov: Floats, count: int) -> Floats:
    """Return normal vectors (count, columns) of this covariance, scaled to unit variance."""
    unknown, correlation = np.diag(cov) <= 0, _correlation(cov)
    correlation[unknown, unknown] = 1.0
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn: Floats = _normal(count, len(cov)) @ root.T
    return drawn


def _correlation(cov: Floats) -> Floats:
    deviations = np.sqrt(np.diag(cov))
    scale = np.where(deviations > 0, deviations, 1.0)
    correlation: Floats = cov / np.outer(scale, scale)
    return correlation


@lru_cache(maxsize=4)
def _normal(count: int, size: int) -> Floats:
    return np.random.default_rng(size).standard_normal((count, size))


def simultaneous_alpha(
    estimates: Sequence[Estimate],
    columns: Sequence[Leaves],
    alpha: float = ALPHA,
    *,
    awaited: int = 0,
) -> float:
    """Return the alpha of one interval at which all intervals hold together.

    It only grows as awaited ones come in, so what holds at one look holds at all later ones, and
    looking costs nothing.

    Args:
        estimates: The differences whose intervals are to hold together.
        columns: Leaves of each, in the same order; those of one name are over the same items.
        alpha: Error rate of all intervals together.
        awaited: Others that are to come. Nothing is known of them, so they have their share of
            alpha by Bonferroni, as all have where a variance is not known.

    Returns:
        The error rate of each interval.
    """
    count = len(estimates) + awaited
    if count < 2:
        return alpha
    cov = _covariance(columns) if estimates else None
    if cov is None:
        return alpha / count
    dfs = [estimate.df for estimate in estimates if estimate.df is not None]
    df = max(dfs) if len(dfs) == len(estimates) else None  # alpha is lowest for the largest
    errors, found = _JointErrors(cov, df), alpha / count
    for _ in range(_ROUNDS):
        joint = errors.of(found) + awaited * found
        before, found = found, min(alpha, alpha * found / joint)
        if found - before <= _CLOSE * found:
            break
    return found


class _JointErrors:
    """Chances that some of several intervals of one alpha miss what they are of.

    Args:
        cov: Covariance of the estimates, shape (steps, steps).
        df: Degrees of freedom of all of them; None for the normal distribution.
    """

    def __init__(self, cov: Floats, df: float | None) -> None:
        self.df = df
        self.drawn = _draw(cov, _ALPHA_DRAWS)
        self.first = np.arange(_ALPHA_DRAWS) % len(cov)  # the step that is known to be beyond
        correlation = _correlation(cov)
        np.fill_diagonal(correlation, 1.0)
        self.carried = correlation[self.first]
        dice = np.random.default_rng(0)
        self.place = dice.random(_ALPHA_DRAWS)
        self.squares = np.ones(_ALPHA_DRAWS) if df is None else dice.chisquare(df + 1, _ALPHA_DRAWS)

    def of(self, alpha: float) -> float:
        """Return the chance that one of the intervals misses.

        Args:
            alpha: Error rate of each two-sided interval.

        Returns:
            A probability, drawn.
        """
        limit = quantile(1 - alpha / 2, self.df)
        tail = self.place * alpha / 2
        if self.df is None:
            beyond, scale = -special.ndtri(tail), np.ones(_ALPHA_DRAWS)
        else:
            # Given t, the sum of squares below it is chi-squared with df + 1 over 1 + t^2 / df.
            beyond = -special.stdtrit(self.df, tail)
            scale = np.sqrt((self.df + beyond**2) / self.squares)
        rows = np.arange(_ALPHA_DRAWS)
        shift = beyond / scale - self.drawn[rows, self.first]
        others = np.abs(self.drawn + self.carried * shift[:, None]) * scale[:, None] >= limit
        others[rows, self.first] = True
        return float(self.drawn.shape[1] * alpha * (1 / others.sum(axis=1)).mean())


@dataclass(frozen=True)
class Ranking:
    """All pairs of steps, tested together; (steps, steps) each.

    `error` is the standard error of the difference of two steps, `reach` the factor by which it is
    multiplied for intervals that hold for all pairs at once. `behind[i, j]` says that i is worse
    than j.
    """

    p: Floats
    error: Floats
    reach: float
    behind: NDArray[np.bool_]


def rank(
    gains: Sequence[float],
    estimates: Sequence[Estimate],
    columns: Sequence[Leaves],
    *,
    counts_items: bool,
) -> Ranking | None:
    """Return which steps are worse than another one.

    Args:
        gains: Difference of each step from the bridge, positive where it is for the better.
        estimates: The same differences, in the same order.
        columns: Leaves of each, in the same order; the names are the same in all.
        counts_items: Whether the estimates are of credits, of which few may differ.

    Returns:
        All pairs of steps, tested together; None if a variance is not known, or for one step.
    """
    cov = _covariance(columns)
    if cov is None or len(columns) < 2:
        return None
    plain = np.sqrt(_of_differences(cov))
    slack = _slack(columns[0]) if counts_items else 0
    error = np.where(plain > 0, np.sqrt(np.maximum(_dependent(columns), 0.0) + slack), 0.0)
    df = min((e.df for e in estimates if e.df is not None), default=None)
    gap = np.subtract.outer(np.asarray(gains), np.asarray(gains))
    t = np.divide(np.abs(gap), error, out=np.zeros_like(gap), where=error > 0)
    left = np.triu(plain > 0, 1)
    count = min(_MOST_DRAWS, max(_DRAWS, _PAIRS_DRAWN // max(1, int(left.sum()))))
    vectors = np.ascontiguousarray((_draw(cov, count) * np.sqrt(np.diag(cov))).T)
    scales = _scales(df, count)
    largest = _largest_pair(vectors, plain, left) * scales
    reach = float(np.quantile(largest, 1 - ALPHA))
    p = np.where(plain > 0, 1 - np.searchsorted(np.sort(largest), t) / len(largest), 1.0)
    rejected = np.zeros_like(left)
    limit = reach
    while (new := left & (t > limit)).any():
        rejected |= new
        left &= ~new
        limit = float(np.quantile(_largest_pair(vectors, plain, left) * scales, 1 - ALPHA))
    return Ranking(p, error, reach, (rejected | rejected.T) & (gap < 0))


def _scales(df: float | None, count: int) -> Floats:
    """Return what turns normal draws into Student's t: they share one error of the variance."""
    if df is None:
        return np.ones(count)
    return np.sqrt(df / np.random.default_rng(0).chisquare(df, count))


def _of_differences(cov: Floats) -> Floats:
    own = np.diag(cov)
    found = own[:, None] + own[None, :] - 2 * cov
    return np.where(found > 1e-12 * (own[:, None] + own[None, :]), found, 0.0)


def _dependent(columns: Sequence[Leaves]) -> Floats:
    """Return variances of differences; a slice or task is as much above independence as the worse step."""
    total = np.zeros((len(columns), len(columns)))
    for name in columns[0]:
        leaf = [{name: column[name]} for column in columns]
        own = _covariance(leaf)
        assert own is not None
        above = np.array([_above(column[name][1]) for column in columns])
        total += _of_differences(own) * np.maximum.outer(above, above)
    return total


def _above(variance: Variance | None) -> float:
    """Return how far the variance is above that of independent items, as a factor."""
    plain = 0.0 if variance is None else float(variance.independent @ variance.independent)
    return variance.value / plain if variance is not None and plain > 0 else 1.0


def _slack(column: Leaves) -> float:
    shares = [weight / len(one.independent) for weight, one in column.values() if one is not None]
    return sum(_SLACK / len(shares) * share**2 for share in shares)


def _largest_pair(vectors: Floats, plain: Floats, left: NDArray[np.bool_]) -> Floats:
    """Return the largest |t| over the pairs that are left, for each draw; `vectors` are (steps, draws)."""
    largest = np.zeros(vectors.shape[1])
    gap = np.empty_like(largest)
    for i, j in zip(*np.nonzero(left), strict=True):
        np.subtract(vectors[i], vectors[j], out=gap)
        np.abs(gap, out=gap)
        gap *= 1 / plain[i, j]
        np.maximum(largest, gap, out=largest)
    return largest
