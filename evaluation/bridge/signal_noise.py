"""How much a series of checkpoints shows: monotonicity, noise, signal, and agreement of metrics.

monotonicity   Spearman's rank correlation of values with steps, turned so that 1 is steady gain
noise          what neighbouring checkpoints scatter by once the trend is taken off: each value
               less the straight line between its two neighbours, (r_i - w r_before
               - (1 - w) r_after), whose variance is (1 + w^2 + (1 - w)^2) times that of one
               checkpoint (Gasser, Sroka and Jennen-Steinmetz, Biometrika 73, 1986)
signal         change along the least squares line from the first to the last checkpoint. The
               range of the values, as in "Signal and Noise" (arXiv 2508.13144), grows with the
               noise itself where a stage has few checkpoints
agreement      share of all pairs of checkpoints that two metrics order alike, ties as one half:
               (1 + Kendall's tau) / 2
"""

import math
from collections.abc import Sequence

import numpy as np

from evaluation.metrics.variance import Floats

FEWEST_STEPS = 3
"""Checkpoints, below which a series shows neither trend nor noise."""


def monotonicity(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation of values with steps.

    Args:
        steps: Steps of the checkpoints in ascending order.
        values: Value of a metric at each step.

    Returns:
        Rho from -1 to 1; None for few checkpoints, or values that never change.
    """
    if len(steps) < FEWEST_STEPS:
        return None
    x, y = _ranks(steps), _ranks(values)
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else None


def _ranks(values: Sequence[float]) -> Floats:
    """Return ranks from 1 on; equal values share the mean of theirs."""
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2)[place]
    return shared


def neighbour_noise(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the standard deviation of one checkpoint about the trend.

    The trend is taken for straight between a checkpoint's two neighbours.

    Args:
        steps: Steps of the checkpoints in ascending order.
        values: Value of a metric at each step.

    Returns:
        In the unit of the values; None for few checkpoints.
    """
    if len(steps) < FEWEST_STEPS:
        return None
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    before = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
    off = y[1:-1] - before * y[:-2] - (1 - before) * y[2:]
    return float(np.sqrt(np.mean(off**2 / (1 + before**2 + (1 - before) ** 2))))


def trend(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the change from the first to the last step along the least squares line.

    Args:
        steps: Steps of the checkpoints in ascending order.
        values: Value of a metric at each step.

    Returns:
        In the unit of the values; None for few checkpoints.
    """
    if len(steps) < FEWEST_STEPS:
        return None
    x = np.asarray(steps, dtype=np.float64) - np.mean(steps)
    slope = float(x @ np.asarray(values, dtype=np.float64)) / float(x @ x)
    return slope * float(x[-1] - x[0])


def agreement(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the share of pairs of checkpoints that two metrics order alike.

    Args:
        ours: Value of one metric at each checkpoint.
        theirs: Value of the other metric at the same checkpoints.

    Returns:
        From 0 to 1, a tie in either as one half; None for few checkpoints.
    """
    if len(ours) < FEWEST_STEPS:
        return None
    above = np.triu_indices(len(ours), 1)
    sides = [
        np.sign(np.subtract.outer(np.asarray(one), np.asarray(one)))[above]
        for one in (ours, theirs)
    ]
    return float((1 + sides[0] * sides[1]).mean() / 2)
