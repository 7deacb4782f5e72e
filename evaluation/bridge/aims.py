"""What an aim is decided on: its headline delta, and the secondary metric next to it.

A tier's secondary metrics (`companions`) move with every question, where an accuracy moves only with
those whose verdict changes. They are of no family of tests and change no verdict: where an aim is
undecided on the headline, the first one of its tier tells, over the same items and at the same level,
whether the step is better.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from evaluation.bridge.delta import OVERALL, Delta, group_item, macro
from evaluation.bridge.pairing import AGAIN
from evaluation.bridge.simultaneous_intervals import at_level
from evaluation.bridge.statistics import Estimate
from evaluation.errors import BridgeError
from evaluation.results.deltas_file import CompanionRow
from evaluation.settings.aims import Aim
from evaluation.settings.tiers import TIERS


def aimed_at(aim: Aim, deltas: Sequence[Delta], key: str) -> tuple[list[Delta], Delta]:
    """Return the deltas of an aim's items, and the one it is decided on; `key` is its place.

    Raises:
        BridgeError: nothing of it was scored.
    """
    own, headline = _find(aim, deltas)
    if headline is None:
        group = f" of the group {aim.group!r}" if aim.group else ""
        if aim.metric is not None and _find(aim.model_copy(update={"metric": None}), deltas)[1]:
            raise BridgeError(
                f"{key}: it aims at {aim.metric} of {aim.tier}{group}, which needs each candidate's "
                "log-probability; score both sides with per-item tables, or leave `metric` out"
            )
        raise BridgeError(
            f"{key}: it aims at {aim.tier}{group}, of which the two sides have no item in common; "
            f"{AGAIN}"
        )
    return own, headline


def _find(aim: Aim, deltas: Sequence[Delta]) -> tuple[list[Delta], Delta | None]:
    """Return the deltas of an aim's items, and their mean; of a tier of rates, its rate alone."""
    own, item = [delta for delta in deltas if delta.tier == aim.tier], aim.group or OVERALL
    metric = f"delta_{aim.decided_on.name}"
    if TIERS[aim.tier].rates:
        own = [delta for delta in own if delta.item == item]
        return own, next((delta for delta in own if delta.metric == metric), None)
    own = [delta for delta in own if delta.metric == metric]
    named = [delta for delta in own if aim.group and delta.item == group_item(aim.group)]
    items = [delta for delta in own if not delta.is_mean]
    if named:  # a group of the suite
        weights = named[0].estimate.weights
        return [delta for delta in items if delta.item in weights], replace(named[0], item=item)
    own = [delta for delta in items if aim.group in (None, delta.group)]
    return own, macro(own, item=item) if own else None


def gain_interval(sign: int, known: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of the gain, where `sign` is that of a difference that is one."""
    if known.low is None or known.high is None:
        return None, None
    return (known.low, known.high) if sign > 0 else (-known.high, -known.low)


def companion_delta(aim: Aim, deltas: Sequence[Delta]) -> Delta | None:
    """Return the delta of the tier's first secondary metric over an aim's items.

    None where there is none, or where the aim names such a metric itself.
    """
    companions = TIERS[aim.tier].companions
    if not companions or aim.decided_on.companion:
        return None
    names = {delta.item for delta in _find(aim, deltas)[0]}
    same = [delta for delta in deltas if delta.item in names or delta.is_mean]
    return _find(aim.model_copy(update={"metric": companions[0].name}), same)[1]


def companion_verdict(aim: Aim, deltas: Sequence[Delta], alpha: float) -> CompanionRow | None:
    """Return what a secondary metric tells of an undecided aim; None where nothing is known of it."""
    delta = companion_delta(aim, deltas)
    if delta is None:
        return None
    known = at_level(delta.estimate, alpha)
    low, high = gain_interval(delta.sign, known)
    if low is None or high is None or known.low is None or known.high is None:
        return None
    says: Literal["better", "worse", "undecided"] = (
        "better" if low > 0 else "worse" if high < 0 else "undecided"
    )
    metric = delta.definition
    shown = f"undecided too, {metric.change(known.value, known.low, known.high)}"
    if says != "undecided":  # by its size, whichever sign means better
        bounds = sorted((abs(low), abs(high)))
        size = metric.change(abs(known.value), bounds[0], bounds[1], sign="")
        shown = f"{says} by {size}"
    group = f" of {aim.group}" if aim.group else ""
    sentence = f"{aim.decided_on.words}{group} undecided; {metric.words} {shown}"
    return CompanionRow(
        metric=delta.metric,
        says=says,
        delta=known.value,
        low=known.low,
        high=known.high,
        sentence=sentence,
    )
