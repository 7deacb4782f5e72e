"""State which run is better, and from which step on, over all matched checkpoints.

Which run is better is decided at the last matched checkpoint; from three on, by the interval with the noise
of checkpoints of both runs (`bridge.choice`). It leads from a checkpoint on if, there and at every later
one but the last, the interval of A - B excludes zero in its favor. These intervals are simultaneous over
all matched checkpoints. Statements on single slices, tasks or rates are also corrected for their number
(Bonferroni).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.bridge.choice import RecipeInterval, of_recipe, simultaneous_alpha
from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha
from evaluation.results.comparison_file import LeadRow
from evaluation.runs.matching import Match
from evaluation.settings.tiers import TIERS, TierName

Key = tuple[TierName, str, str]
"""Tier, item and metric of a delta."""

Side = Literal["A", "B"]
_SIDES: dict[int, Side] = {1: "A", -1: "B"}


@dataclass(frozen=True, kw_only=True)
class Lead:
    """Which run is better in one delta, from the matched checkpoints of index `since` on.

    `estimates` have simultaneous intervals over all checkpoints, each of confidence 1 - `alpha`. `recipe`
    has the last one's with the noise of checkpoints, which decides where it is known.
    """

    key: Key
    deltas: Sequence[Delta]
    estimates: Sequence[Estimate]
    alpha: float
    better: Side | None
    since: int | None
    recipe: RecipeInterval | None = None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The interval that decides."""
        decides = self.recipe or self.estimates[-1]
        return decides.low, decides.high


def leads(matched: Sequence[Sequence[Delta]]) -> list[Lead]:
    """Return a lead for every delta that all matched checkpoints have.

    Args:
        matched: Deltas A - B of each match, in ascending steps; at least one match.
    """
    by_key = [
        {(delta.tier, delta.item, delta.metric): delta for delta in deltas} for deltas in matched
    ]
    common = [key for key in by_key[0] if all(key in match for match in by_key)]
    return [_lead(key, [match[key] for match in by_key], _family(key, common)) for key in common]


def _family(key: Key, all_keys: Sequence[Key]) -> int:
    """Return the number of statements that are corrected together: one for an overall value."""
    tier, item, metric = key
    if not is_mean(tier, item):
        same = (key for key in all_keys if key[::2] == (tier, metric))
        return sum(not is_mean(*other[:2]) for other in same)
    return sum(other[:2] == (tier, item) for other in all_keys) if TIERS[tier].rates else 1


def _lead(key: Key, deltas: Sequence[Delta], family: int) -> Lead:
    alpha = simultaneous_alpha([delta.estimate for delta in deltas], ALPHA / family)
    estimates = [at_alpha(delta.estimate, alpha) for delta in deltas]
    recipe = of_recipe(estimates[-1], [delta.estimate.value for delta in deltas], sides=1)
    signs = [_sign(deltas[0].sign, estimate.low, estimate.high) for estimate in estimates]
    if recipe is not None:
        signs[-1] = _sign(deltas[0].sign, recipe.low, recipe.high)
    since = len(signs)
    while since > 0 and signs[since - 1] == signs[-1] != 0:
        since -= 1
    better = _SIDES.get(signs[-1])
    return Lead(
        key=key,
        deltas=deltas,
        estimates=estimates,
        alpha=alpha,
        better=better,
        since=since if better else None,
        recipe=recipe,
    )


def _sign(sign: int, low: float | None, high: float | None) -> int:
    """Return 1 if A is better by the interval, -1 if B is, 0 if they are not significantly different."""
    if low is None or high is None or low <= 0 <= high:
        return 0
    return sign if low > 0 else -sign


def lead_row(lead: Lead, matched: Sequence[Match]) -> LeadRow:
    """Return the row of a lead for files, with a sentence for readers, from its ascending matches."""
    since, recipe = None if lead.since is None else matched[lead.since], lead.recipe
    tier, item, metric = lead.key
    return LeadRow(
        tier=tier,
        item=item,
        metric=metric,
        better=lead.better,
        since_step_a=None if since is None else since.ours.step,
        since_step_b=None if since is None else since.theirs.step,
        checkpoints=0 if lead.since is None else len(matched) - lead.since,
        confidence=1 - lead.alpha,
        recipe_low=None if recipe is None else recipe.low,
        recipe_high=None if recipe is None else recipe.high,
        sentence=_sentence(lead, matched),
    )


def _sentence(lead: Lead, matched: Sequence[Match]) -> str:
    """Return e.g. `tier3 accuracy: A is better from step 2000 on (3 of 4 matched checkpoints), …`."""
    tier, item, metric = lead.key
    change = lead.deltas[-1].definition.change(lead.estimates[-1].value, *lead.bounds)
    noise = "" if lead.recipe is None else ", with the noise of checkpoints"
    last, text = matched[-1].label, f"not significantly different at {matched[-1].label}"
    if lead.bounds[0] is None:
        text = "not known, as the last matched checkpoints cannot be tested"
    elif lead.since is not None and len(matched) == 1:
        text = f"{lead.better} is better at {last}, the only match, so since when is not known"
    elif lead.since is not None:
        count = f"{len(matched) - lead.since} of {len(matched)} matched checkpoints"
        text = f"{lead.better} is better from {matched[lead.since].label} on ({count})"
    what = f"{tier} {'' if item == OVERALL else f'{item} '}{TIERS[tier].metric(metric).words}"
    return f"{what}: {text}; A - B {change} at {last}{noise}"


def corrected_for(leads: Sequence[Lead], count: int) -> str:
    """Return sentences that explain the leads' corrections for comparisons at so many checkpoints."""
    items = (
        "Those of single slices, tasks, categories and rates are also corrected for their number "
        "(Bonferroni). There is no correction across tiers or pairs of runs."
    )
    if count == 1:
        return (
            "One pair of checkpoints was compared, so the 95 % intervals of overall values need no "
            f"correction, and since when a run is better is not known. {items}"
        )
    overall = [lead for lead in leads if lead.key[1] == OVERALL]
    confidence = 100 * (1 - min((lead.alpha for lead in overall), default=1.0))
    return (
        f"Which run is better is decided by intervals that hold for all {count} matched checkpoints at once "
        f"(max-t over the checkpoints; up to {confidence:.1f} % for one), not by the 95 % intervals "
        f"of single checkpoints. {items}"
    )
