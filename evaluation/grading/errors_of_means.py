"""The standard error of a mean, for what the tier files hold and for the paired deltas.

A mean (or a ratio of sums) is the sum of what each item contributes to it, its influence u_i; they
add up to zero. For n independent units Var = n / (n - 1) * sum u_i^2, the sample variance over n. Items
of one cluster (questions on one text) are added up first, and n counts clusters then: Miller, "Adding
error bars to evals" (arXiv 2411.00640), with the factor G / (G - 1) of Cameron and Miller, "A
practitioner's guide to cluster-robust inference" (2015), without which few clusters give too small an
error.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cluster_sums(influence: Floats, clusters: Sequence[str]) -> Floats:
    """What each cluster contributes, by the name of each item's cluster; (clusters,)."""
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    return np.bincount(index, weights=influence).astype(np.float64)


def standard_error(variance: float, units: int) -> float:
    """Of a mean whose `units` >= 2 independent contributions have squares that add to `variance`."""
    return math.sqrt(variance * units / (units - 1))


def error_of_mean(values: Floats, clusters: Sequence[str] | None = None) -> float | None:
    """Standard error of the mean of `values`, (n,); None for a single item or cluster."""
    influence: Floats = (values - values.mean()) / len(values)
    if clusters is not None:
        influence = cluster_sums(influence, clusters)
    if len(influence) < 2:
        return None
    return standard_error(float(influence @ influence), len(influence))
