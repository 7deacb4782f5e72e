"""What holds for several tests, and for several steps of which the best is chosen.

Steps are compared with one bridge over the same items, so their deltas are correlated, often strongly. The
simultaneous alpha is the error rate of one interval at which all steps' intervals hold at once: the largest
|z| over the steps is drawn from the normal distribution with the correlation of their influences. A
simultaneous interval is each estimate's usual one at that alpha, so exact, skewed and ordinary ones can be
combined. Steps still to come get their share by Bonferroni.

Which steps are behind the chosen one: each pair has the estimate that a comparison of its two steps has,
from their own paired differences. The data chose the step, so any of the k (k - 1) / 2 pairs might have
been looked at: p times their number.

Another checkpoint of the run has another level, so from FEWEST checkpoints on a second interval is about
the recipe. Its noise is one number, sqrt(2 V), with V the variance of the last checkpoints' deltas: the
bridge's level is assumed to scatter as theirs, and a trend counts as noise. It reaches sqrt(a^2 + b^2),
with a the reach of the questions and b the noise times Student's t (Graybill and Wang, JASA 75, 1980).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from evaluation.bridge.estimate import ALPHA, Estimate, mean, quantile
from evaluation.bridge.paired import estimate_of
from evaluation.metrics.variance import Floats

_DRAWS = 20_000

FEWEST, MOST = 3, 5
"""Fewest and most last checkpoints from which their noise is estimated: the last half of them."""


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values of a family of tests, in order; None does not count as a test."""
    tests = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        adjusted[place] = largest
    return adjusted


def simultaneous_alpha(
    estimates: Sequence[Estimate], alpha: float = ALPHA, *, awaited: int = 0
) -> float:
    """Return the alpha at which the intervals of all estimates, and of those awaited, hold at once."""
    known = [estimate for estimate in estimates if estimate.se]
    count = len(known) + awaited
    if count < 2:
        return alpha
    correlation = _correlation(known) if len(known) > 1 else None
    if correlation is None:
        return alpha / count
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    largest = np.sort(np.abs(_normal(len(known)) @ root.T).max(axis=1))
    low, high = alpha / count, alpha
    while high - low > 1e-4 * alpha:
        each = (low + high) / 2
        beyond = 1 - np.searchsorted(largest, quantile(1 - each / 2, math.inf)) / _DRAWS
        low, high = (each, high) if beyond + awaited * each <= alpha else (low, each)
    return low


@lru_cache(maxsize=4)
def _normal(size: int) -> Floats:
    return np.random.default_rng(size).standard_normal((_DRAWS, size))


Parts = Sequence[tuple[float, Estimate] | None]
"""Weight and estimate of one item in each of several estimates."""


def _correlation(estimates: Sequence[Estimate]) -> Floats | None:
    """Return the correlation of estimates by their influences; None where one has none."""
    leaves = [estimate.leaves("") for estimate in estimates]
    cov, shared = np.zeros((len(leaves),) * 2), list[Floats]()
    for name in dict.fromkeys(name for of_step in leaves for name in of_step):
        parts = [of_step.get(name) for of_step in leaves]
        is_shared = any(part and part[1].paired and part[1].paired.groups.shared for part in parts)
        rows = _rows(parts, is_shared)
        if is_shared:
            shared.append(rows)
        else:
            cov += rows @ rows.T
    if shared:
        joint = np.zeros((len(leaves), max(rows.shape[1] for rows in shared)))
        for rows in shared:
            joint[:, : rows.shape[1]] += rows
        cov += joint @ joint.T
    deviations = np.sqrt(np.diag(cov))
    if not (deviations > 0).all():
        return None
    correlation: Floats = cov / np.outer(deviations, deviations)
    return correlation


def _rows(parts: Parts, is_shared: bool) -> Floats:
    """Return the weighted influences of each estimate, (estimates, groups)."""
    spreads = [part and part[1].spread for part in parts]
    known = [term.labels for term in spreads if term is not None and len(term.labels)]
    start = 0 if is_shared else min((int(labels.min()) for labels in known), default=0)
    end = max((int(labels.max()) for labels in known), default=start)
    rows = np.zeros((len(parts), end + 1 - start))
    for row, part, term in zip(rows, parts, spreads, strict=True):
        if part is not None and term is not None:
            row[term.labels - start] = part[0] * term.influence
    return rows


def against(step: Estimate, chosen: Estimate) -> Estimate | None:
    """Return step minus chosen, as a comparison of the two would be; None without their paired units."""
    parts = {}
    left, right = step.leaves(""), chosen.leaves("")
    for name, (_, mine) in left.items():
        own, other = mine.paired, right[name][1].paired if name in right else None
        if own is None or other is None or own.amounts.shape != other.amounts.shape:
            return None
        amounts = own.amounts - other.amounts
        amounts = np.where(np.abs(amounts) < 1e-12, 0.0, amounts)  # 1/3 is rounded
        passes = own.passes and other.passes
        parts[name] = estimate_of(replace(own, amounts=amounts, passes=passes))
    return mean(parts, step.weights or None)


class RecipeInterval(NamedTuple):
    """A difference as one of recipes: the noise that it adds, and the interval with it."""

    noise: float
    low: float
    high: float


def of_recipe(estimate: Estimate, values: Sequence[float], sides: int = 2) -> RecipeInterval | None:
    """Return the interval of a difference with the noise of checkpoints; None for too few of them.

    Args:
        values: The difference at each checkpoint, in ascending steps.
        sides: How often the noise counts: 1 where each value has a checkpoint of its own on both sides.
    """
    last = values[-max(FEWEST, min(MOST, len(values) // 2)) :]
    if len(last) < FEWEST or estimate.low is None or estimate.high is None:
        return None
    noise = math.sqrt(sides * float(np.var(last, ddof=1)))
    reach = float(special.stdtrit(len(last) - 1, 1 - ALPHA / 2)) * noise
    low = estimate.value - math.hypot(estimate.value - estimate.low, reach)
    high = estimate.value + math.hypot(estimate.high - estimate.value, reach)
    return RecipeInterval(noise, max(low, -estimate.limit), min(high, estimate.limit))
