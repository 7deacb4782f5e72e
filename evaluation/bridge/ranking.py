"""Which steps of a stage are significantly worse than another one.

Each pair has the estimate and the p-value that a comparison of its two steps has (`pairs.difference_of`).
All pairs are tested together by the largest |z| of a pair, with z the normal quantile of p, then again
without the rejected pairs, until none is rejected (Romano and Wolf, Econometrica 73, 2005). The remaining
steps include every best one with confidence, as in Hansen, Lunde and Nason's model confidence set (2011).

Of more than MOST_ESTIMATED steps, pairs without the shown one have no estimate of their own, which would take
hours for thousands. They matter only by whether they are rejected; their z follow from the steps' covariance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evaluation.bridge.estimate import ALPHA, Estimate, quantile
from evaluation.bridge.paired_binary import at_alpha
from evaluation.bridge.pairs import difference_of
from evaluation.bridge.simultaneous_intervals import Leaves, covariance_of, draw_normal
from evaluation.metrics.variance import Floats

_DRAWS, _MOST_DRAWS, _PAIRS_DRAWN = 10_000, 40_000, 10**7
"""Draws for a ranking: fewest, most, and in between as many as give _PAIRS_DRAWN draws of pairs."""

MOST_ESTIMATED = 60
"""Most steps of which every pair has its own estimate, as in a comparison: that takes less than a second."""

_FEWER_DRAWS, _MOST_PAIRS_DRAWN = 2_000, 10**9
"""Fewest draws where _DRAWS would give more than _MOST_PAIRS_DRAWN draws of pairs: from 450 steps on."""


@dataclass(frozen=True)
class Ranking:
    """Pairs of steps, all tested together; (steps, steps) each.

    `pairs[i, j]` is the estimate of step i minus step j, for i < j. Simultaneous intervals of all pairs
    have the error rate `alpha` each. `behind[i, j]` is whether i is significantly worse than j.
    """

    pairs: Mapping[tuple[int, int], Estimate]
    p: Floats
    alpha: float
    behind: NDArray[np.bool_]

    def interval(self, ours: int, theirs: int) -> tuple[float | None, float | None]:
        """Return the simultaneous interval of our step minus theirs."""
        alpha = at_alpha(self.pairs[min(ours, theirs), max(ours, theirs)], self.alpha)
        if ours < theirs or alpha.low is None or alpha.high is None:
            return alpha.low, alpha.high
        return -alpha.high, -alpha.low


def rank(
    estimates: Sequence[Estimate],
    columns: Sequence[Leaves],
    item: str,
    sign: int,
    chosen: int | None = None,
) -> Ranking | None:
    """Return which steps are worse than another one; None if a variance is unknown, or for one step.

    Args:
        estimates: Difference of each step from the bridge.
        columns: Leaves of each, in the same order; the names are the same in all.
        item: Name of the item, for estimates of a single one.
        sign: 1 if more is better, else -1.
        chosen: Number of the step whose pairs are shown: of more than MOST_ESTIMATED steps, only they
                have estimates. None for all pairs.
    """
    cov = covariance_of(columns)
    if cov is None or len(columns) < 2:
        return None
    chosen = chosen if len(columns) > MOST_ESTIMATED else None
    pairs = {}
    for i, j in combinations(range(len(columns)), 2):
        if chosen in (None, i, j):
            difference = difference_of(estimates[i], estimates[j], item)
            if difference is None:
                return None
            pairs[i, j] = difference
    plain = np.sqrt(_of_differences(cov))
    lead = np.subtract.outer(*2 * [np.array([sign * estimate.value for estimate in estimates])])
    z = np.zeros_like(plain) if chosen is None else _normal_scores(estimates, cov, plain, lead)
    for (i, j), difference in pairs.items():
        p = 1.0 if difference.p is None else difference.p
        z[i, j] = z[j, i] = -special.ndtri(max(p, 1e-300) / 2)
        lead[i, j], lead[j, i] = sign * difference.value, -sign * difference.value
    every = np.triu(plain > 0, 1)
    left, count = every & (z > 0), _draws(int(every.sum()))
    vectors = np.ascontiguousarray((draw_normal(cov, count) * np.sqrt(np.diag(cov))).T)
    largest = _largest_pair(vectors, plain, every)
    limit = float(np.quantile(largest, 1 - ALPHA))
    alpha = min(ALPHA, 2 * float(special.ndtr(-limit)))
    joint = 1 - np.searchsorted(np.sort(largest), z) / len(largest)
    p_values = np.where((plain > 0) & (z > 0), np.maximum(joint, 2 * special.ndtr(-z)), 1.0)
    rejected = np.zeros_like(left)
    while (new := left & (z > max(limit, quantile(1 - ALPHA / 2, None)))).any():
        rejected |= new
        left &= ~new
        every &= ~new
        limit = float(np.quantile(_largest_pair(vectors, plain, every), 1 - ALPHA))
    return Ranking(pairs, p_values, alpha, (rejected | rejected.T) & (lead < 0))


def _draws(pairs: int) -> int:
    most = max(_FEWER_DRAWS, min(_DRAWS, _MOST_PAIRS_DRAWN // max(1, pairs)))
    return min(_MOST_DRAWS, max(most, _PAIRS_DRAWN // max(1, pairs)))


def _normal_scores(
    estimates: Sequence[Estimate], cov: Floats, plain: Floats, lead: Floats
) -> Floats:
    """Return each pair's |z|, (steps, steps), by Student's t with what is known of the two steps.

    The standard error is that of independent units, times the larger effect of their dependence on one of the
    two steps; the degrees of freedom are the smaller ones.
    """
    deviations = np.sqrt(np.diag(cov))
    se = np.array([estimate.se or 0.0 for estimate in estimates])
    effect = np.maximum(
        1.0, np.divide(se, deviations, out=np.ones_like(deviations), where=deviations > 0)
    )
    se = plain * np.maximum.outer(effect, effect)
    t = np.divide(np.abs(lead), se, out=np.zeros_like(lead), where=se > 0)
    df = np.array([estimate.df or estimate.units - 1 for estimate in estimates], dtype=np.float64)
    tail = special.stdtr(np.maximum(1.0, np.minimum.outer(df, df)), -t)
    scores: Floats = -special.ndtri(np.maximum(tail, 1e-300))
    return scores


def _of_differences(cov: Floats) -> Floats:
    diagonal = np.diag(cov)
    variances = diagonal[:, None] + diagonal[None, :] - 2 * cov
    return np.where(variances > 1e-12 * (diagonal[:, None] + diagonal[None, :]), variances, 0.0)


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
