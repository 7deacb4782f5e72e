"""The weighted mean of one checkpoint's shares, such as accuracies of several tasks, with its 95 % interval.

Shares whose standard error is known make one mean with Wilson's interval, as a single share has. Tasks of
which all answers are right, or all wrong, and shares of which another program gave the bounds have no such
error: they are added by their distances to their bounds, as independent of the others.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import Estimate
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.layout import shared_groups
from evaluation.metrics.value_interval import share_bounds, sum_of_shares

Shares = Mapping[str, Estimate]
"""Estimates by task; those with units have `differences`, whose layout holds their source rows."""


_MEASURED = ""
"""The term of all shares with a standard error; no task has this name."""


def mean_of_shares(shares: Shares, weights: Mapping[str, float]) -> Estimate:
    """Return a weighted mean with the interval of a share; that of a single one stays."""
    mean = _mean(shares, weights)
    if len(weights) == 1 or any(shares[name].low is None for name in weights):
        return mean
    if mean.se is not None:
        low, high = share_bounds(mean.value, mean.se, mean.units, mean.df)
    else:
        low, high = sum_of_shares(_independent_parts(shares, weights))
    return replace(mean, low=low, high=high)


def _mean(shares: Shares, weights: Mapping[str, float]) -> Estimate:
    return macro_mean({name: shares[name] for name in weights}, weights)


def _independent_parts(
    shares: Shares, weights: Mapping[str, float]
) -> Iterator[tuple[float, float, float]]:
    """Yield value, low and high of each term of a mean: measured shares, all 0, all 1, and each other one."""
    terms: dict[float | str, dict[str, float]] = {}
    for name, weight in weights.items():
        share = shares[name]
        is_alike = share.units > 0 and share.value in (0.0, 1.0)
        alone = share.value if is_alike else name
        terms.setdefault(_MEASURED if share.se is not None else alone, {})[name] = weight
    for term, own in terms.items():
        weight = math.fsum(own.values())
        fractions = {name: part / weight for name, part in own.items()}
        whole = _mean(shares, fractions)
        low, high = whole.low, whole.high
        if term == _MEASURED and len(own) > 1:
            low, high = share_bounds(whole.value, whole.se, whole.units, whole.df)
        elif term in (0.0, 1.0):
            low, high = share_bounds(whole.value, None, _least_units(shares, fractions), None)
        assert low is not None
        assert high is not None
        yield weight * whole.value, weight * low, weight * high


def _least_units(shares: Shares, weights: Mapping[str, float]) -> float:
    """Return how many units a mean of shares that are all 0, or all 1, stands for.

    It is one over the largest weight that a unit has in the mean, as the units with that weight may be the
    only ones that could have been answered otherwise. A source row that several tasks ask is one unit.
    """
    known = [shares[name].differences for name in weights]
    layouts = tuple(one.layout for one in known if one is not None)
    labels = shared_groups(layouts) if len(layouts) == len(known) else None
    if labels is None:
        return min(shares[name].units / weight for name, weight in weights.items())
    parts: Counter[int] = Counter()
    for weight, label in zip(weights.values(), labels, strict=True):
        rows = np.unique(label).tolist()
        parts.update(dict.fromkeys(rows, weight / len(rows)))
    return 1 / max(parts.values())
