"""Metrics of blocks of text: ratios of sums over the blocks, whose two columns `settings.tiers` names.

A slice's value is that of all its blocks together, not a mean over blocks. A mean over slices, or over
checkpoints, is the mean of the ratios, of which a metric with the link `exp` is the exponential: the mean
perplexity is exp of the mean nats per token. Where an external command gives no such columns, their metrics
are absent, which is neither an error nor 0.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.variance import Floats
from evaluation.settings.metric import Metric

LN_2 = math.log(2)


class Ratio(NamedTuple):
    """What a metric adds up and what it divides by, (units,) each.

    Amounts are NaN for units that do not count; without weights, the others count alike.
    """

    amounts: Floats
    weights: Floats | None = None

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        """Which units count."""
        return np.isfinite(self.amounts)

    @property
    def value(self) -> float:
        """The ratio over all units that count."""
        if self.weights is not None:
            return float(self.amounts.sum() / self.weights.sum())
        return float(self.amounts[self.is_judged].mean())


def ratio_of(metric: Metric, columns: Mapping[str, Floats]) -> Ratio | None:
    """Return a metric's amounts and weights; None where a column is missing, or the weights add up to 0."""
    if metric.numerator not in columns or metric.denominator not in columns:
        return None
    weights = columns[metric.denominator] * (LN_2 if metric.in_bits else 1.0)
    return Ratio(columns[metric.numerator], weights) if weights.sum() > 0 else None
