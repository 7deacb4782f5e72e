"""Simultaneous confidence intervals over several steps, of which the best is chosen.

Steps are compared with one bridge over the same items, so their deltas are correlated, often strongly.
A multiplier bootstrap weighs the items at random. With normal weights that all steps share, it draws
deltas that are normal with the covariance of the steps' influences; here they are drawn directly from
that distribution.

    alpha      error rate of one interval at which all steps' intervals hold simultaneously, from the
               probability that the largest |t| over the steps exceeds a limit (max-t). Draws are
               conditional on one step exceeding it, which is accurate for small probabilities, too
               (Owen, Maximov and Chertkov, Electronic Journal of Statistics 13, 2019): k p mean(1 / S),
               with p the probability for one of k steps and S the number of steps beyond the limit
    interval   a simultaneous interval is each estimate's usual one at that alpha, so exact, skewed
               and ordinary estimates can be combined

Draws depend only on the number of steps, so results are reproducible.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.bridge.estimate import ALPHA, Estimate, quantile
from evaluation.metrics.layout import Layout, shared_groups
from evaluation.metrics.variance import Floats, Variance

_ALPHA_DRAWS = 4_000
"""Draws that give a probability to about 1 % of itself, however small it is."""


_ROUNDS, _CLOSE = 8, 1e-3
"""Most rounds of the search for alpha, which starts at Bonferroni's, and the relative change that ends it."""

Leaves = Mapping[str, tuple[float, Variance | None]]
"""Weight and variance of each slice or task of an estimate."""


def leaves(estimate: Estimate, name: str) -> Leaves:
    """Return weight and variance of each slice or task that an estimate is the mean of.

    Args:
        name: Name of the item, for an estimate of one item.
    """
    if not estimate.parts:
        return {name: (1.0, estimate.variance)}
    return {part: (estimate.weights[part], one.variance) for part, one in estimate.parts.items()}


def covariance_of(columns: Sequence[Leaves]) -> Floats | None:
    """Return the covariance (columns, columns) of estimates; None if a variance is unknown.

    Leaves of one name are over the same items, and those of several names may share source rows. Blocks
    and clusters are treated as independent here: their dependence is much the same in every step, so it
    hardly changes correlations.
    """
    names = dict.fromkeys(name for column in columns for name in column)
    by_leaf = {name: [column.get(name, (0.0, None)) for column in columns] for name in names}
    shared = _shared_rows(by_leaf)
    total = np.zeros((len(columns), len(columns)))
    joint = np.zeros((len(columns), 0))
    for number, (name, of_leaf) in enumerate(by_leaf.items()):
        if any(
            variance is None and name in column
            for (_, variance), column in zip(of_leaf, columns, strict=True)
        ):
            return None
        size = next(len(variance.independent) for _, variance in of_leaf if variance is not None)
        block = np.stack(
            [
                np.zeros(size) if variance is None else weight * variance.independent
                for weight, variance in of_leaf
            ]
        )
        if shared is None:
            total += block @ block.T
            continue
        labels = shared[number]
        if (missing := 1 + int(labels.max()) - joint.shape[1]) > 0:
            joint = np.pad(joint, ((0, 0), (0, missing)))
        np.add.at(joint.T, labels, block.T)
    return total + joint @ joint.T


def _shared_rows(
    by_leaf: Mapping[str, Sequence[tuple[float, Variance | None]]],
) -> tuple[NDArray[np.int64], ...] | None:
    """Return the dependent groups of all leaves' items; None where no two leaves share a source row."""
    layouts = []
    for of_leaf in by_leaf.values():
        first = next((variance for _, variance in of_leaf if variance is not None), None)
        if first is None:
            return None
        layouts.append(first.layout or Layout(len(first.independent)))
    return shared_groups(tuple(layouts))


def draw_normal(cov: Floats, count: int) -> Floats:
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
    """Return the alpha of one interval at which all intervals hold simultaneously.

    It only grows as awaited estimates arrive, so early looks at the results need no further correction.

    Args:
        columns: Leaves of each, in the same order; those of one name are over the same items.
        awaited: Number of estimates still to come. They get their share of alpha by Bonferroni, as
            all estimates do where a variance is unknown.
    """
    count = len(estimates) + awaited
    if count < 2:
        return alpha
    cov = covariance_of(columns) if estimates else None
    if cov is None:
        return alpha / count
    dfs = [estimate.df for estimate in estimates if estimate.df is not None]
    df = max(dfs) if len(dfs) == len(estimates) else None  # alpha is lowest for the largest
    # A fixed point of alpha * wanted / joint error. Bonferroni's, where it starts, is never too large.
    # The joint error grows at most in proportion to alpha, as more misses coincide, so a round never passes
    # the fixed point: wherever the search ends, the intervals hold simultaneously.
    errors, each_alpha = _JointErrors(cov, df), alpha / count
    for _ in range(_ROUNDS):
        joint = errors.of(each_alpha) + awaited * each_alpha
        before, each_alpha = each_alpha, min(alpha, alpha * each_alpha / joint)
        if each_alpha - before <= _CLOSE * each_alpha:
            break
    return each_alpha


class _JointErrors:
    """The probability that at least one of several intervals misses its true value.

    Args:
        cov: Covariance of the estimates, shape (steps, steps).
        df: Degrees of freedom of all of them; None for the normal distribution.
    """

    def __init__(self, cov: Floats, df: float | None) -> None:
        self.df = df
        self.drawn = draw_normal(cov, _ALPHA_DRAWS)
        self.first = np.arange(_ALPHA_DRAWS) % len(cov)  # the step that exceeds the limit
        correlation = _correlation(cov)
        np.fill_diagonal(correlation, 1.0)
        self.carried = correlation[self.first]
        dice = np.random.default_rng(0)
        self.place = dice.random(_ALPHA_DRAWS)
        self.squares = np.ones(_ALPHA_DRAWS) if df is None else dice.chisquare(df + 1, _ALPHA_DRAWS)

    def of(self, alpha: float) -> float:
        """Return how often, among draws, an interval or more of this error rate misses the truth."""
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
