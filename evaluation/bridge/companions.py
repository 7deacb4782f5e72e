"""What stands beside an aim that its headline leaves undecided.

A tier's companions move with every question, where an accuracy moves only with those that turn. They
are of no family of tests and change no verdict: where an aim is undecided on the headline, the first
companion of its tier says, over the same items and at the same level, whether the step is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.bridge.aims import aimed_at
from evaluation.bridge.deltas import Delta
from evaluation.bridge.levels import at_level
from evaluation.bridge.statistics import ALPHA
from evaluation.errors import BridgeError
from evaluation.settings.config import Aim
from evaluation.settings.tiers import TIERS

Says = Literal["better", "worse", "undecided"]


@dataclass(frozen=True, kw_only=True)
class CompanionVerdict:
    """A companion's delta over an aim's items; `says` is by its interval alone."""

    metric: str
    says: Says
    delta: float
    low: float
    high: float
    sentence: str


def companion_aim(aim: Aim) -> Aim | None:
    """The same aim at the first companion of its tier; None where it has none, or names a metric."""
    companions = TIERS[aim.tier].companions
    if not companions or aim.decided_on.companion:
        return None
    return aim.model_copy(update={"metric": companions[0].name})


def companion_delta(aim: Aim, deltas: Sequence[Delta]) -> Delta | None:
    """The companion's delta over an aim's items; None where nothing is known of it."""
    beside = companion_aim(aim)
    try:
        return None if beside is None else aimed_at(beside, deltas, "")[1]
    except BridgeError:
        return None


def companion_verdict(
    aim: Aim, deltas: Sequence[Delta], alpha: float = ALPHA
) -> CompanionVerdict | None:
    """What a companion says of an undecided aim; None where nothing is known of it."""
    delta = companion_delta(aim, deltas)
    if delta is None:
        return None
    known = at_level(delta.estimate, alpha)
    if known.low is None or known.high is None:
        return None
    metric = TIERS[aim.tier].metric(delta.metric.removeprefix("delta_"))
    gains = (known.low, known.high) if delta.sign > 0 else (-known.high, -known.low)
    says: Says = "better" if gains[0] > 0 else "worse" if gains[1] < 0 else "undecided"
    group = f" of {aim.group}" if aim.group else ""
    told = _told(says, known.value, known.low, known.high)
    return CompanionVerdict(
        metric=delta.metric,
        says=says,
        delta=known.value,
        low=known.low,
        high=known.high,
        sentence=f"{aim.decided_on.words}{group} undecided; {metric.words} {told}",
    )


def _told(says: Says, value: float, low: float, high: float) -> str:
    """A difference that is shown by its size, whichever sign means better; else with its sign."""
    if says == "undecided":
        return f"undecided too, {value:+.4f} [{low:+.4f}, {high:+.4f}]"
    bounds = sorted((abs(low), abs(high)))
    return f"{says} by {abs(value):.4f} [{bounds[0]:.4f}, {bounds[1]:.4f}]"
