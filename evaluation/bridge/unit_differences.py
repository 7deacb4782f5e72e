"""Paired differences of two items' units, by any metric: all that compares two checkpoints begins here."""

import numpy as np

from evaluation.metrics.differences import Differences, Kind
from evaluation.metrics.ratios import Ratio
from evaluation.results.kinds import Item, Units
from evaluation.settings.metric import Metric


def differences_of(mine: Item, other: Item, metric: Metric) -> Differences | None:
    """Return the differences of a metric, unit by unit, NaN where one could not be judged on both sides.

    Returns:
        None where a side does not have the metric, or the sides have different units.
    """
    left, right = mine.units, other.units
    if left is None or right is None or [*left.ids] != [*right.ids]:
        return None
    ours, theirs = left.measured.get(metric.name), right.measured.get(metric.name)
    if ours is None or theirs is None:
        return None
    amounts = ours.amounts - theirs.amounts
    is_judged = np.isfinite(amounts)
    if not is_judged.any():
        return None
    kind = kind_of(metric, ours)
    sides = ours.amounts[is_judged], theirs.amounts[is_judged]
    passes = kind == "credit" and bool(np.isin(sides, (0.0, 1.0)).all())
    return Differences(
        kind=kind, amounts=amounts, weights=ours.weights, layout=left.layout, passes=passes
    )


def kind_of(metric: Metric, ratio: Ratio) -> Kind:
    """Return how differences of a metric are estimated."""
    if ratio.weights is not None:
        return "ratio"
    return "measure" if metric.is_secondary else "credit"


def values_alone(units: Units, metric: Metric) -> Differences | None:
    """Return one side's own amounts, as differences from nothing; None where the side lacks the metric."""
    ratio = units.measured.get(metric.name)
    if ratio is None or not ratio.is_judged.any():
        return None
    kind: Kind = "measure" if ratio.weights is None else "ratio"
    return Differences(
        kind=kind, amounts=ratio.amounts, weights=ratio.weights, layout=units.layout
    ).judged
