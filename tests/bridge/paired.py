"""Estimates from the values of both sides."""

import numpy as np

from evaluation.bridge.differences import Paired
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.paired import estimate_of
from evaluation.metrics.layout import Layout, Names
from evaluation.metrics.variance import Floats


def paired_mean(
    ours: Floats, theirs: Floats, clusters: Names = None, strata: Names = None
) -> Estimate:
    """Of a real-valued measure."""
    groups = Layout(len(ours), clusters, strata).groups
    return estimate_of(Paired(amounts=np.asarray(ours - theirs, np.float64), groups=groups))


def paired_rate(
    ours: Floats, theirs: Floats, clusters: Names = None, strata: Names = None
) -> Estimate:
    """Of credits in [0, 1]."""
    passes = bool(np.isin([ours, theirs], (0.0, 1.0)).all())
    groups = Layout(len(ours), clusters, strata).groups
    amounts = np.asarray(ours - theirs, np.float64)
    return estimate_of(Paired(amounts=amounts, groups=groups, credit=True, passes=passes))


def of_text(amounts: Floats, weights: Floats | None = None) -> Estimate:
    """Of blocks in order."""
    weights = np.ones(len(amounts)) if weights is None else weights
    groups = Layout(len(amounts), is_text=True).groups
    return estimate_of(Paired(amounts=amounts, weights=weights, groups=groups))
