"""Which deltas decide an objective, and the interval of the gain."""

from collections.abc import Sequence
from dataclasses import replace

from evaluation.bridge.delta import OVERALL, Delta, group_item
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.means import counted_deltas, macro
from evaluation.bridge.pairing import AGAIN
from evaluation.errors import BridgeError
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS


def decisive_deltas(
    objective: Objective, deltas: Sequence[Delta], key: str
) -> tuple[list[Delta], Delta]:
    """Return the deltas that an objective is decided on.

    Args:
        objective: One of the stage's objectives.
        deltas: Deltas of the step against the bridge.
        key: Place of the objective in the configuration, for messages.

    Returns:
        The deltas of its items, and the one it is decided on, which may be their mean.

    Raises:
        BridgeError: When nothing of the objective was scored.
    """
    own, headline = _find(objective, deltas)
    if headline is None:
        tier, metric = objective.tier, objective.metric
        place = f"{tier} of the group {objective.group!r}" if objective.group else tier
        if metric is not None and _find(objective, deltas, TIERS[tier].headline)[1]:
            raise BridgeError(
                f"{key}: it is on {metric} of {place}, which needs each candidate's log-probability; "
                "score both sides with per-item tables, or leave `metric` out"
            )
        raise BridgeError(
            f"{key}: it is on {place}, of which the two sides have no item in common; {AGAIN}"
        )
    return own, headline


def _find(
    objective: Objective, deltas: Sequence[Delta], metric: str | None = None
) -> tuple[list[Delta], Delta | None]:
    """Return the deltas of an objective's items, and their mean; of a tier of rates, its rate alone.

    By `metric`, if that is not the one that decides it.
    """
    group, item = objective.group, objective.group or OVERALL
    name = f"delta_{metric or objective.decided_on.name}"
    own = [delta for delta in deltas if delta.tier == objective.tier]
    if TIERS[objective.tier].rates:
        own = [delta for delta in own if delta.item == item]
        return own, next((delta for delta in own if delta.metric == name), None)
    own = [delta for delta in own if delta.metric == name]
    items = [delta for delta in own if not delta.is_mean]
    mean = next((delta for delta in own if group and delta.item == group_item(group)), None)
    if mean is not None:  # a group of the suite
        weights = mean.estimate.weights
        parts = [delta for delta in items if delta.item in weights]
        if len(parts) < len(weights):  # of several tiers
            counted = counted_deltas(deltas)
            parts = [counted[leaf] for leaf in weights if leaf in counted]
        return parts, replace(mean, item=item)
    own = [delta for delta in items if group in (None, delta.group)]
    return own, macro(own, item) if own else None


def gain_interval(sign: int, estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of the gain.

    Args:
        sign: 1 if more of the metric is better, else -1.
        estimate: Difference of the metric.

    Returns:
        Low and high bound, positive where they are for the better; None without interval.
    """
    if estimate.low is None or estimate.high is None:
        return None, None
    return (estimate.low, estimate.high) if sign > 0 else (-estimate.high, -estimate.low)


def secondary_delta(objective: Objective, deltas: Sequence[Delta]) -> Delta | None:
    """Return the delta of the tier's first secondary metric over an objective's items.

    Args:
        objective: One of the stage's objectives.
        deltas: Deltas of the step against the bridge.

    Returns:
        None where there is none, or where the objective names such a metric itself.
    """
    secondary = TIERS[objective.tier].secondary
    if not secondary or objective.decided_on.is_secondary:
        return None
    names = {delta.item for delta in _find(objective, deltas)[0]}
    same = [delta for delta in deltas if delta.item in names or delta.is_mean]
    return _find(objective, same, secondary[0].name)[1]
