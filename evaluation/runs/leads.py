"""Statements on which run is better, and from which step on, at all matched checkpoints at once.

A run leads from a checkpoint on if, there and at every later one, the interval of A - B lies on its
side of zero. These intervals hold for all matched checkpoints together (max-t over them, see
`bridge.simultaneous_intervals`), so that looking at many does not make one of them a lead. A statement on a
single slice, task or rate is also corrected for how many there are (Bonferroni).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.estimate import ALPHA, Estimate
from evaluation.bridge.paired_binary import at_alpha
from evaluation.bridge.simultaneous_intervals import Leaves, leaves, simultaneous_alpha
from evaluation.results.comparison_file import LeadRow
from evaluation.runs.matching import Match
from evaluation.settings.tiers import TIERS, TierName

Key = tuple[TierName, str, str]
"""Tier, item and metric of a delta."""

Side = Literal["A", "B"]


@dataclass(frozen=True, kw_only=True)
class Lead:
    """Which run is better by one delta over the matched checkpoints; `since` is the index of the first of its lead.

    `estimates` have the intervals that hold for all checkpoints at once, each of confidence 1 - `alpha`.
    """

    key: Key
    deltas: Sequence[Delta]
    estimates: Sequence[Estimate]
    alpha: float
    better: Side | None
    since: int | None


def leads(matched: Sequence[Sequence[Delta]]) -> list[Lead]:
    """Return the lead in every delta that all matched checkpoints have.

    Args:
        matched: Deltas A - B of each match, in ascending steps; at least one match.

    Returns:
        Leads in the order of the first match's deltas.
    """
    by_key = [{_key(delta): delta for delta in deltas} for deltas in matched]
    common = [key for key in by_key[0] if all(key in one for one in by_key)]
    return [_lead(key, [one[key] for one in by_key], _family(key, common)) for key in common]


def _key(delta: Delta) -> Key:
    return delta.tier, delta.item, delta.metric


def _family(key: Key, all_keys: Sequence[Key]) -> int:
    """Return how many such statements are made together: one for an overall value."""
    tier, item, metric = key
    if not is_mean(tier, item):
        same = (one for one in all_keys if one[::2] == (tier, metric))
        return sum(not is_mean(*one[:2]) for one in same)
    return sum(one[:2] == (tier, item) for one in all_keys) if TIERS[tier].rates else 1


def _lead(key: Key, deltas: Sequence[Delta], family: int) -> Lead:
    known = [delta for delta in deltas if delta.estimate.se]
    alpha = _alpha(known, ALPHA / family)
    estimates = [at_alpha(delta.estimate, alpha) for delta in deltas]
    signs = [_sign(delta, one) for delta, one in zip(deltas, estimates, strict=True)]
    since = len(signs)
    while since > 0 and signs[since - 1] == signs[-1] != 0:
        since -= 1
    better: Side | None = {1: "A", -1: "B"}.get(signs[-1])  # type: ignore[assignment]
    return Lead(
        key=key,
        deltas=deltas,
        estimates=estimates,
        alpha=alpha,
        better=better,
        since=since if better else None,
    )


def _alpha(known: Sequence[Delta], alpha: float) -> float:
    """Return the alpha of one interval; Bonferroni's where the checkpoints are not of the same items."""
    columns = [leaves(delta.estimate, delta.item) for delta in known]
    if not all(_shape(column) == _shape(columns[0]) for column in columns):
        return alpha / len(known)
    return simultaneous_alpha([delta.estimate for delta in known], columns, alpha)


def _shape(column: Leaves) -> dict[str, int | None]:
    return {name: variance and len(variance.independent) for name, (_, variance) in column.items()}


def _sign(delta: Delta, known: Estimate) -> int:
    """Return 1 if A is better by the interval, -1 if B is, 0 if they are not significantly different."""
    if known.low is None or known.high is None or known.low <= 0 <= known.high:
        return 0
    return delta.sign if known.low > 0 else -delta.sign


def lead_row(lead: Lead, matched: Sequence[Match]) -> LeadRow:
    """Return a lead as files have it.

    Args:
        lead: A lead over the matched checkpoints.
        matched: The matches that it is over, in ascending steps.

    Returns:
        The row, with a sentence for people.
    """
    since = None if lead.since is None else matched[lead.since]
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
        sentence=_sentence(lead, matched),
    )


def _sentence(lead: Lead, matched: Sequence[Match]) -> str:
    """Return e.g. `tier3 accuracy: A is better from step 2000 on (3 of 4 matched checkpoints), …`."""
    last = lead.estimates[-1]
    change = lead.deltas[-1].definition.change(last.value, last.low, last.high)
    tier, item, metric = lead.key
    what = f"{tier} {'' if item == OVERALL else f'{item} '}{TIERS[tier].metric(metric).words}: "
    if lead.better is None or lead.since is None:
        return f"{what}{_no_lead(lead, matched)}; A - B {change} at {matched[-1].label}"
    where = matched[lead.since].label
    if len(matched) == 1:
        text = f"{lead.better} is better at {where}, the only match, so since when is not known"
    else:
        count = f"{len(matched) - lead.since} of {len(matched)} matched checkpoints"
        text = f"{lead.better} is better from {where} on ({count})"
    return f"{what}{text}; A - B {change} at {matched[-1].label}"


def _no_lead(lead: Lead, matched: Sequence[Match]) -> str:
    if lead.estimates[-1].low is None:
        return "not known, as the last matched checkpoints cannot be tested"
    where = " at the last matched checkpoints" if len(matched) > 1 else ""
    return f"not significantly different{where}"


def corrected_for(leads: Sequence[Lead], count: int) -> str:
    """Return what the leads are corrected for.

    Args:
        leads: All leads of a stage.
        count: Matched checkpoints that they are over.

    Returns:
        Sentences for the report.
    """
    items = (
        "Those of single slices, tasks, categories and rates are also corrected for how many there "
        "are (Bonferroni). Each tier, and each pair of runs, is a statement of its own."
    )
    if count == 1:
        return (
            "One pair of checkpoints was compared, so the 95 % intervals of overall values are their "
            f"own, and since when a run is better is not known. {items}"
        )
    overall = [lead for lead in leads if lead.key[1] == OVERALL]
    confidence = 100 * (1 - min((lead.alpha for lead in overall), default=1.0))
    return (
        f"Which run is better is decided by intervals that hold for all {count} matched checkpoints at once "
        f"(max-t over the checkpoints; up to {confidence:.1f} % for one), not by the 95 % intervals "
        f"that each has of its own. {items}"
    )
