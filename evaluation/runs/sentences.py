"""Who is ahead, in words, and what that is corrected for."""

from collections.abc import Sequence

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.statistics import Estimate
from evaluation.runs.compare import ComparedStage
from evaluation.runs.lead import Lead
from evaluation.runs.matching import Match
from evaluation.settings.tiers import TIERS


def lead_sentence(lead: Lead, matched: Sequence[Match]) -> str:
    """E.g. `tier3 accuracy: A is ahead from step 2000 on (3 of 4 matched checkpoints), …`."""
    last = lead.estimates[-1]
    what = f"{measure(lead)}: "
    if lead.ahead is None or lead.since is None:
        return f"{what}{_untold(lead, matched)}; {_difference(last)} at {matched[-1].label}"
    where = matched[lead.since].label
    if len(matched) == 1:
        said = f"{lead.ahead} is ahead at {where}, the only match, so since when is not known"
    else:
        count = f"{len(matched) - lead.since} of {len(matched)} matched checkpoints"
        said = f"{lead.ahead} is ahead from {where} on ({count})"
    return f"{what}{said}; {_difference(last)} at {matched[-1].label}"


def measure(lead: Lead) -> str:
    """Tier, item and metric as sentences call them."""
    tier, item, metric = lead.key
    words = TIERS[tier].metric(metric.removeprefix("delta_")).words
    return f"{tier} {words}" if item == OVERALL else f"{tier} {item} {words}"


def _untold(lead: Lead, matched: Sequence[Match]) -> str:
    if lead.estimates[-1].low is None:
        return "not known, as the last matched checkpoints cannot be tested"
    return (
        "not significantly different at the last matched checkpoints"
        if len(matched) > 1
        else "not significantly different"
    )


def _difference(known: Estimate) -> str:
    return f"A - B {known.shown}"


def corrected_for(stage: ComparedStage) -> str:
    """In one or two sentences."""
    count = len(stage.matched)
    items = (
        "Those of single slices, tasks, categories and rates are also corrected for how many there "
        "are (Bonferroni). Each tier, and each pair of runs, is a statement of its own."
    )
    if count == 1:
        return (
            "One pair of checkpoints was compared, so the 95 % intervals of overall values are their "
            f"own and nothing can be said of since when a run is ahead. {items}"
        )
    overall = [lead for lead in stage.leads if lead.key[1] == OVERALL]
    confidence = 100 * (1 - min((lead.alpha for lead in overall), default=1.0))
    return (
        f"Who is ahead is said by intervals that hold for all {count} matched checkpoints at once "
        f"(max-t over the checkpoints; up to {confidence:.1f} % for one), not by the 95 % intervals "
        f"that each has of its own. {items}"
    )
