"""Who is ahead, and from when on: what holds at all matched checkpoints at once.

A run leads from a checkpoint on if, there and at every later one, the interval of A - B lies on its
side of zero. These intervals hold for all matched checkpoints together (max-t over them, see
`bridge.simultaneous_intervals`), so that looking at many does not make one of them a lead. What is said of a
single slice, task or rate is also corrected for how many there are (Bonferroni).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.simultaneous_intervals import at_level, leaves, simultaneous_level
from evaluation.bridge.statistics import ALPHA, Estimate
from evaluation.metrics.spread import Spread
from evaluation.settings.tiers import TIERS, TierName

Key = tuple[TierName, str, str]
"""Tier, item and metric of a delta."""

Side = Literal["A", "B"]


@dataclass(frozen=True, kw_only=True)
class Lead:
    """Of one delta over the matched checkpoints; `since` is the index of the first of its lead.

    `estimates` have the intervals that hold for all checkpoints at once, each at the level `alpha`.
    """

    key: Key
    deltas: Sequence[Delta]
    estimates: Sequence[Estimate]
    alpha: float
    ahead: Side | None
    since: int | None


def leads(matched: Sequence[Sequence[Delta]]) -> list[Lead]:
    """The lead in every delta that all matched checkpoints have; in their order."""
    by_key = [{_key(delta): delta for delta in deltas} for deltas in matched]
    common = [key for key in by_key[0] if all(key in one for one in by_key)]
    return [_lead(key, [one[key] for one in by_key], _family(key, common)) for key in common]


def _key(delta: Delta) -> Key:
    return delta.tier, delta.item, delta.metric


def _family(key: Key, all_keys: Sequence[Key]) -> int:
    """How many such statements are made beside one another: one for an overall value."""
    tier, item, metric = key
    if item != OVERALL:
        return sum(one[0] == tier and one[2] == metric and one[1] != OVERALL for one in all_keys)
    return sum(one[:2] == (tier, item) for one in all_keys) if TIERS[tier].rates else 1


def _lead(key: Key, deltas: Sequence[Delta], family: int) -> Lead:
    known = [delta for delta in deltas if delta.estimate.se]
    alpha = _level(known, ALPHA / family)
    estimates = [at_level(delta.estimate, alpha) for delta in deltas]
    signs = [_sign(delta, one) for delta, one in zip(deltas, estimates, strict=True)]
    since = len(signs)
    while since > 0 and signs[since - 1] == signs[-1] != 0:
        since -= 1
    ahead: Side | None = {1: "A", -1: "B"}.get(signs[-1])  # type: ignore[assignment]
    return Lead(
        key=key,
        deltas=deltas,
        estimates=estimates,
        alpha=alpha,
        ahead=ahead,
        since=since if ahead else None,
    )


def _level(known: Sequence[Delta], alpha: float) -> float:
    """Of one interval; Bonferroni's where the checkpoints are not of the same items."""
    columns = [leaves(delta.estimate, delta.item) for delta in known]
    if not all(_shape(column) == _shape(columns[0]) for column in columns):
        return alpha / len(known)
    return simultaneous_level([delta.estimate for delta in known], columns, alpha)


def _shape(column: Mapping[str, tuple[float, Spread | None]]) -> dict[str, int | None]:
    return {name: spread and len(spread.independent) for name, (_, spread) in column.items()}


def _sign(delta: Delta, known: Estimate) -> int:
    """1 if A is ahead by the interval, -1 if B is, 0 if they are not significantly different."""
    if known.low is None or known.high is None or known.low <= 0 <= known.high:
        return 0
    return delta.sign if known.low > 0 else -delta.sign
