"""Paired differences of two items' units, by any metric: all that compares two checkpoints begins here."""

from evaluation.bridge.paired_binary import credits_of
from evaluation.metrics.differences import Differences
from evaluation.results.kinds import Blocks, CreditItem, Item, NatsItem
from evaluation.settings.metric import Metric


def differences_of(mine: Item, other: Item, metric: Metric) -> Differences | None:
    """Return the differences of a metric, unit by unit.

    Returns:
        Differences of all units of the files, NaN where one could not be judged on both sides; None where a
        side does not have the metric, or the sides have different units.
    """
    if isinstance(mine, NatsItem) and isinstance(other, NatsItem):
        return differences_of_blocks(mine.blocks, other.blocks, metric)
    if not isinstance(mine, CreditItem) or not isinstance(other, CreditItem):
        return None
    if metric.name in mine.credits and metric.name in other.credits:
        return _of_credits(mine, other, metric.name)
    return _of_measures(mine, other, metric.name)


def differences_of_blocks(
    mine: Blocks | None, other: Blocks | None, metric: Metric
) -> Differences | None:
    """Return the differences of a ratio of sums over blocks, or None as `differences_of` does."""
    if mine is None or other is None or mine.ids.tolist() != other.ids.tolist():
        return None
    ours, theirs = mine.ratio(metric), other.ratio(metric)
    if ours is None or theirs is None:
        return None
    amounts = ours.amounts - theirs.amounts
    return Differences(kind="ratio", amounts=amounts, weights=ours.weights, layout=mine.layout)


def _of_credits(mine: CreditItem, other: CreditItem, name: str) -> Differences | None:
    left, right = mine.credits[name], other.credits[name]
    left, right = left.without(right), right.without(left)
    if left.ids != right.ids or not left.ids:
        return None
    return left.over_all(credits_of(left.credit, right.credit, left.layout))


def _of_measures(mine: CreditItem, other: CreditItem, name: str) -> Differences | None:
    left, right = mine.secondary, other.secondary
    if left is None or right is None or left.ids != right.ids:
        return None
    if name not in left.values or name not in right.values:
        return None
    amounts = left.values[name] - right.values[name]
    return Differences(kind="measure", amounts=amounts, layout=left.layout)
