"""State which run is better, and from which step on, over all matched checkpoints.

Which run is better is decided at the last matched checkpoint; from three on, by the interval with the noise
of checkpoints of both runs (`bridge.choice`). It leads from a checkpoint on if, there and at every later one
but the last, the interval of A - B excludes zero in its favor. These intervals are simultaneous over all
matched checkpoints; those of single slices, tasks or rates also over their number (Bonferroni).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from evaluation.bridge.choice import of_recipe, simultaneous_alpha
from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.estimate import ALPHA, at_alpha
from evaluation.bridge.runs.matching import Match
from evaluation.settings.tiers import TIERS, TierName

Key = tuple[TierName, str, str]
"""Tier, item and metric of a delta."""

Bounds = tuple[float | None, float | None]

_SIDES: dict[int, Literal["A", "B"]] = {1: "A", -1: "B"}


class Lead(NamedTuple):
    """Which run is better in one delta, at the last `checkpoints`, from A's step `since` on.

    `bounds` are those of A - B at each match, which hold for all of them at once.
    """

    tier: TierName
    item: str
    metric: str
    better: Literal["A", "B"] | None
    since: int | None
    checkpoints: int
    sentence: str
    bounds: Sequence[Bounds]


def leads(matched: Sequence[Match], deltas: Sequence[Sequence[Delta]]) -> list[Lead]:
    """Return a lead for every delta that all matched checkpoints have.

    Args:
        matched: In ascending steps; at least one.
        deltas: Deltas A - B of each match.
    """
    by_key = [{(d.tier, d.item, d.metric): d for d in of_match} for of_match in deltas]
    common = [key for key in by_key[0] if all(key in match for match in by_key)]
    return [
        _lead(key, matched, [match[key] for match in by_key], _family(key, common))
        for key in common
    ]


def _family(key: Key, all_keys: Sequence[Key]) -> int:
    """Return the number of statements that are corrected together: one for an overall value."""
    tier, item, metric = key
    if not is_mean(tier, item):
        same = (key for key in all_keys if key[::2] == (tier, metric))
        return sum(not is_mean(*other[:2]) for other in same)
    return sum(other[:2] == (tier, item) for other in all_keys) if TIERS[tier].rates else 1


def _lead(key: Key, matched: Sequence[Match], deltas: Sequence[Delta], family: int) -> Lead:
    alpha = simultaneous_alpha([delta.estimate for delta in deltas], ALPHA / family)
    estimates = [at_alpha(delta.estimate, alpha) for delta in deltas]
    recipe = of_recipe(estimates[-1], [delta.estimate.value for delta in deltas], sides=1)
    decides = recipe or estimates[-1]
    bounds = [(estimate.low, estimate.high) for estimate in estimates[:-1]]
    signs = [_sign(deltas[0].sign, *pair) for pair in [*bounds, (decides.low, decides.high)]]
    since = len(signs)
    while since > 0 and signs[since - 1] == signs[-1] != 0:
        since -= 1
    count, last, better = len(signs) - since, matched[-1].label, _SIDES.get(signs[-1])
    text = f"not significantly different at {last}"
    if decides.low is None:
        text = "not known, as the last matched checkpoints cannot be tested"
    elif better and len(matched) == 1:
        text = f"{better} is better at {last}, the only match, so since when is not known"
    elif better:
        label = matched[since].label
        text = f"{better} is better from {label} on ({count} of {len(matched)} matched checkpoints)"
    tier, item, metric = key
    about = TIERS[tier].metric(metric)
    change = about.change(estimates[-1].value, decides.low, decides.high)
    what = f"{tier} {'' if item == OVERALL else f'{item} '}{about.words}"
    noise = "" if recipe is None else ", with the noise of checkpoints"
    return Lead(
        tier,
        item,
        metric,
        better,
        matched[since].ours.step if better else None,
        count if better else 0,
        f"{what}: {text}; A - B {change} at {last}{noise}",
        [(estimate.low, estimate.high) for estimate in estimates],
    )


def _sign(sign: int, low: float | None, high: float | None) -> int:
    """Return 1 if A is better by the interval, -1 if B is, 0 if they are not significantly different."""
    if low is None or high is None or low <= 0 <= high:
        return 0
    return sign if low > 0 else -sign
