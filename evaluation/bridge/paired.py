"""Estimates from paired differences of one item's units.

passes or fails   below FEW discordant items by exact tests (`exact_tests`)
all others        Student's t over groups; of fractions with at most as many degrees of freedom as items
                  that change, minus one
"""

import math
from dataclasses import replace

import numpy as np

from evaluation.bridge.differences import Paired
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha, identical, unknown
from evaluation.bridge.exact_tests import PairCounts, mcnemar
from evaluation.metrics.layout import Grouping
from evaluation.metrics.ratios import Ratio
from evaluation.metrics.variance import Spread, interval, ratio_influence, spread
from evaluation.results.read import Item
from evaluation.settings.metric import Metric

FEW = 25
"""Discordant items below which the exact test is used."""


def paired_of(mine: Item, other: Item, metric: Metric, groups: Grouping) -> Paired | None:
    """Return the differences of a metric; None where a side lacks it, or the sides have other units."""
    left, right = mine.units, other.units
    if left is None or right is None or [*left.ids] != [*right.ids]:
        return None
    ours, theirs = left.measured.get(metric.name), right.measured.get(metric.name)
    if ours is None or theirs is None:
        return None
    amounts = ours.amounts - theirs.amounts
    known = np.isfinite(amounts)
    if not known.any():
        return None
    credit = ours.weights is None and not metric.is_secondary
    sides = ours.amounts[known], theirs.amounts[known]
    passes = credit and bool(np.isin(sides, (0.0, 1.0)).all())
    return Paired(
        amounts=amounts, groups=groups, weights=ours.weights, credit=credit, passes=passes
    )


def estimate_of(paired: Paired, *, same: bool = False) -> Estimate:
    """Return the estimate; `same` states that equal credits on all units are no coincidence."""
    judged = paired.judged
    amounts, n = judged.amounts, len(judged.amounts)
    if not n:
        return unknown(0.0, n=0, units=0, note="no interval: no unit could be judged on both sides")
    changes = int(np.count_nonzero(amounts))
    if not changes and (same or (n > 1 and not paired.credit)):
        return identical(n, paired)
    weights = judged.weights
    total = float(n if weights is None else weights.sum())
    value = float(amounts.sum()) / total
    influence = (amounts - value) / n if weights is None else ratio_influence(amounts, weights)
    spreading = spread(influence, judged.groups)
    if spreading is None:
        only = "one item" if n == 1 else f"all {n} items belong to one cluster"
        return unknown(
            value, n=n, units=1, note=f"no interval: {only}, so its variance is not known"
        )
    method = "t over text" if judged.groups.is_text else "paired t"
    method += ", clustered" if judged.groups.repeats else ""
    whole = Estimate(value=value, n=n, units=spreading.units, method=method, se=spreading.error)
    whole = replace(whole, df=spreading.df, third=spreading.third, spread=spreading, paired=paired)
    whole = replace(whole, limit=1.0 if paired.credit else math.inf)
    if paired.credit and (paired.passes or not changes) and changes < FEW:
        return _exact(whole, judged, spreading)
    if paired.credit and not paired.passes:  # equal items say little about the size of a change
        whole = replace(whole, df=min(whole.df, max(1, changes - 1)))
    if spreading.error <= 1e-12 * abs(value):
        note = "no interval: all items differ alike, so its variance is not known"
        return replace(unknown(value, n=n, units=spreading.units, note=note), paired=paired)
    return at_alpha(whole, ALPHA)


def _exact(whole: Estimate, judged: Paired, spreading: Spread) -> Estimate:
    """Return the exact result, or the clustered one where that is wider, as neither is certain.

    Where nothing differs, clusters are what was drawn: each may change as a whole.
    """
    wins, losses = (int((sign * judged.amounts > 0).sum()) for sign in (1, -1))
    counts = PairCounts(wins, losses, whole.n if wins + losses else whole.units)
    if judged.groups.repeats and whole.se is not None and whole.se > counts.error:
        return at_alpha(whole, ALPHA)
    size = counts.error / math.sqrt(len(spreading.influence))
    scale = counts.error / spreading.error if spreading.error else 0.0
    influence = spreading.influence * scale if scale else np.full_like(spreading.influence, size)
    note = f"{wins + losses} of {counts.n} items differ"
    return at_alpha(
        replace(
            whole,
            method="exact binomial, Tango",
            se=counts.error,
            df=max(1, whole.units - 1),
            third=0.0,
            p=mcnemar(wins, losses),
            counts=counts,
            note=note,
            spread=spreading._replace(influence=influence, third=0.0),
        ),
        ALPHA,
    )


def level_of(ratio: Ratio, groups: Grouping, *, is_share: bool) -> Estimate:
    """Return one side's own value with its interval; that of a share is `metrics.variance.interval`'s."""
    alone = Paired(amounts=ratio.amounts, groups=groups, weights=ratio.weights)
    estimate = estimate_of(alone)
    if not is_share or not estimate.n:
        return estimate
    judged = alone.judged
    own = interval(judged.amounts, judged.groups)
    if own.low is None or own.high is None:
        return replace(estimate, low=None, high=None)
    if own.stderr is not None:
        return replace(estimate, low=own.low, high=own.high, limit=math.inf)
    size = (own.high - own.low) / 2 / 1.96
    labels = np.unique(judged.groups.labels)
    even = Spread(
        np.full(len(labels), size / math.sqrt(len(labels))), labels, len(labels), len(labels), 0.0
    )
    return replace(
        estimate, value=own.value, se=size, df=even.df, low=own.low, high=own.high, spread=even
    )
