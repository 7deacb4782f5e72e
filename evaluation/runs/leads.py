"""State which run is better, and from which step on, over all matched checkpoints.

Which run is better is decided at the last matched checkpoint; from three on, by the interval with the noise
of checkpoints of both runs (`bridge.recipes`). It leads from a checkpoint on if, there and at every later one
but the last, the interval of A - B excludes zero in its favor. These intervals are
simultaneous over all matched checkpoints (max-t, see `bridge.simultaneous_intervals`), so that many
checkpoints do not make a chance difference a lead. Statements on single slices, tasks or rates are also
corrected for their number (Bonferroni).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.estimate import ALPHA, Estimate
from evaluation.bridge.paired_binary import at_alpha
from evaluation.bridge.recipes import RecipeInterval, of_recipe
from evaluation.bridge.simultaneous_intervals import Leaves, leaves, simultaneous_alpha
from evaluation.results.comparison_file import LeadRow
from evaluation.runs.matching import Match
from evaluation.settings.tiers import TIERS, TierName

Key = tuple[TierName, str, str]
"""Tier, item and metric of a delta."""

Side = Literal["A", "B"]


@dataclass(frozen=True, kw_only=True)
class Lead:
    """Which run is better in one delta, from the matched checkpoints of index `since` on.

    `estimates` have simultaneous intervals over all checkpoints, each of confidence 1 - `alpha`. `recipe` has
    the last one's with the noise of checkpoints, which decides where it is known.
    """

    key: Key
    deltas: Sequence[Delta]
    estimates: Sequence[Estimate]
    alpha: float
    better: Side | None
    since: int | None
    recipe: RecipeInterval | None = None


def leads(matched: Sequence[Sequence[Delta]]) -> list[Lead]:
    """Return a lead for every delta that all matched checkpoints have.

    Args:
        matched: Deltas A - B of each match, in ascending steps; at least one match.
    """
    by_key = [{_key(delta): delta for delta in deltas} for deltas in matched]
    common = [key for key in by_key[0] if all(key in match for match in by_key)]
    return [_lead(key, [match[key] for match in by_key], _family(key, common)) for key in common]


def _key(delta: Delta) -> Key:
    return delta.tier, delta.item, delta.metric


def _family(key: Key, all_keys: Sequence[Key]) -> int:
    """Return the number of statements that are corrected together: one for an overall value."""
    tier, item, metric = key
    if not is_mean(tier, item):
        same = (key for key in all_keys if key[::2] == (tier, metric))
        return sum(not is_mean(*other[:2]) for other in same)
    return sum(other[:2] == (tier, item) for other in all_keys) if TIERS[tier].rates else 1


def _lead(key: Key, deltas: Sequence[Delta], family: int) -> Lead:
    testable = [delta for delta in deltas if delta.estimate.se]
    alpha = _alpha(testable, ALPHA / family)
    estimates = [at_alpha(delta.estimate, alpha) for delta in deltas]
    signs = [_sign(delta, estimate) for delta, estimate in zip(deltas, estimates, strict=True)]
    since = len(signs)
    while since > 0 and signs[since - 1] == signs[-1] != 0:
        since -= 1
    last = signs[-1]
    recipe = of_recipe(estimates[-1], [d.estimate.value for d in deltas], sides=1)
    if recipe is not None:
        last = _sign(deltas[-1], replace(estimates[-1], low=recipe.low, high=recipe.high))
    better: Side | None = {1: "A", -1: "B"}.get(last)  # type: ignore[assignment]
    return Lead(
        key=key,
        deltas=deltas,
        estimates=estimates,
        alpha=alpha,
        better=better,
        since=since if better else None,
        recipe=recipe,
    )


def _alpha(testable: Sequence[Delta], alpha: float) -> float:
    """Return the alpha of one interval; Bonferroni's if the checkpoints do not have the same items."""
    columns = [leaves(delta.estimate, delta.item) for delta in testable]
    if not all(_shape(column) == _shape(columns[0]) for column in columns):
        return alpha / len(testable)
    return simultaneous_alpha([delta.estimate for delta in testable], columns, alpha)


def _shape(column: Leaves) -> dict[str, int | None]:
    return {name: variance and len(variance.independent) for name, (_, variance) in column.items()}


def _sign(delta: Delta, estimate: Estimate) -> int:
    """Return 1 if A is better by the interval, -1 if B is, 0 if they are not significantly different."""
    if estimate.low is None or estimate.high is None or estimate.low <= 0 <= estimate.high:
        return 0
    return delta.sign if estimate.low > 0 else -delta.sign


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
    last = lead.estimates[-1]
    bounds = (last.low, last.high) if lead.recipe is None else (lead.recipe.low, lead.recipe.high)
    change = lead.deltas[-1].definition.change(last.value, *bounds)
    at = f"at {matched[-1].label}"
    at += "" if lead.recipe is None else ", with the noise of checkpoints"
    tier, item, metric = lead.key
    what = f"{tier} {'' if item == OVERALL else f'{item} '}{TIERS[tier].metric(metric).words}: "
    if lead.better is None or lead.since is None:
        return f"{what}{_no_lead(lead, matched)}; A - B {change} {at}"
    where = matched[lead.since].label
    if len(matched) == 1:
        text = f"{lead.better} is better at {where}, the only match, so since when is not known"
    else:
        count = f"{len(matched) - lead.since} of {len(matched)} matched checkpoints"
        text = f"{lead.better} is better from {where} on ({count})"
    return f"{what}{text}; A - B {change} {at}"


def _no_lead(lead: Lead, matched: Sequence[Match]) -> str:
    if lead.estimates[-1].low is None:
        return "not known, as the last matched checkpoints cannot be tested"
    if lead.recipe is None:
        where = " at the last matched checkpoints" if len(matched) > 1 else ""
        return f"not significantly different{where}"
    alone = _sign(lead.deltas[-1], lead.estimates[-1])
    better = f", though {'A' if alone > 0 else 'B'} is better at {matched[-1].label} itself"
    return f"not significantly different{better if alone else ''}"


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
