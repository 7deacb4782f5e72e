"""Estimates from paired differences, and those of two sides that were compared with the same third one."""

from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import Estimate, unknown
from evaluation.bridge.paired_binary import credit_difference
from evaluation.bridge.statistics import measure_difference, ratio_difference
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.differences import Differences
from evaluation.metrics.variance import Variance

_ESTIMATORS = {
    "credit": credit_difference,
    "measure": measure_difference,
    "ratio": ratio_difference,
}


def estimate_of(differences: Differences) -> Estimate:
    """Return the estimate of paired differences, over the units that are known on both sides.

    Its variance has an influence, of 0, for units that are not known, too, as another step may know them.
    """
    judged = differences.judged
    if judged is differences:
        return _ESTIMATORS[differences.kind](differences)
    if not len(judged.amounts):
        note = "no interval: no unit could be judged on both sides"
        return unknown(0.0, n=0, units=0, note=note)
    estimate = _ESTIMATORS[differences.kind](judged)
    if estimate.variance is None:
        return replace(estimate, differences=differences)
    everywhere = np.zeros(len(differences.amounts))
    everywhere[np.isfinite(differences.amounts)] = estimate.variance.independent
    variance = Variance(*estimate.variance[:4], differences.layout)._replace(independent=everywhere)
    return replace(estimate, variance=variance, differences=differences)


def difference_of(ours: Estimate, theirs: Estimate, item: str) -> Estimate | None:
    """Return ours - theirs by their differences from a third side, as `compare` would; None without units.

    Args:
        item: Name of the item, for estimates of a single one.
    """
    parts = {}
    mine, other = (side.parts or {item: side} for side in (ours, theirs))
    for name in mine:
        left, right = mine[name].differences, other[name].differences
        if left is None or right is None:
            return None
        parts[name] = estimate_of(left.minus(right))
    return macro_mean(parts, ours.weights if ours.parts else None)
