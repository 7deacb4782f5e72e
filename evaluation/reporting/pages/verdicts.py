"""Objectives and the recommendation as pages show them, and the curves of their groups."""

from typing import Any

from evaluation.bridge.delta import OVERALL, group_item
from evaluation.reporting.headlines import steps_in_words
from evaluation.reporting.pages.curves import Series, stage_series
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.stage_files import Recommendation
from evaluation.settings.candidates import candidate_columns, candidate_label, candidate_rank
from evaluation.settings.tiers import TIERS, TierName


def group_series(found: StageResults) -> list[Series]:
    """Return a curve of each group of items that an objective is about.

    Left out are groups of the suite, which have curves like any item, and groups of rates, which are
    items.

    Args:
        found: The stage's results.

    Returns:
        Series from the numbers of the verdicts, each with its group and a note of its items.
    """
    rows: list[dict[str, Any]] = []
    known: dict[tuple[str, str], dict[str, str]] = {}
    for step in sorted(found.deltas, key=candidate_rank):
        for objective in found.deltas[step].objectives:
            named = found.plan.suite.tier_groups(objective.tier)
            if objective.group and objective.group not in named and not TIERS[objective.tier].rates:
                item, metric = group_item(objective.group), objective.metric.removeprefix("delta_")
                about: dict[str, Any] = {"tier": objective.tier, "item": item, "metric": metric}
                about |= {"chance": None, "low": None, "high": None, **candidate_columns(step)}
                bounds = {"delta_low": objective.low, "delta_high": objective.high}
                role = "step" if isinstance(step, int) else "merge"
                rows.append({**about, "role": role, "value": objective.value, **bounds})
                rows.append({**about, "role": "bridge", "value": objective.bridge_value})
                note = f"Mean of {', '.join(objective.items)}."
                known[objective.tier, item] = {"group": objective.group, "note": note}
    return [{**one, **known[one["tier"], one["item"]]} for one in stage_series(rows)]


def advice(found: StageResults) -> dict[str, Any] | None:
    """Return the recommendation as pages show it.

    Args:
        found: The stage's results.

    Returns:
        The recommendation with its words; None if no step or merge is recommended.
    """
    content = found.recommendation
    if content is None or content.candidate is None:
        return None
    kind = (content.kind or "least bad").capitalize()
    return {
        **content.model_dump(),
        "kind": kind,
        "named": candidate_label(content.candidate),
        "similar": _similar(content),
        "similar_steps": steps_in_words([one.candidate for one in content.similar], ", ".join),
        "others": [{**one.model_dump(), "step": one.candidate} for one in content.others],
    }


def _similar(content: Recommendation) -> list[str]:
    """Return the steps that do not differ significantly from the recommended one, with changes."""
    known = content.headline and TIERS[content.headline.tier].metric(content.headline.metric)
    named = []
    for one in content.similar:
        has_change = known is not None and one.low is not None
        change = known.change(one.delta, one.low, one.high) if known and has_change else ""
        named.append(f"{candidate_label(one.candidate)}{f' ({change})' if change else ''}")
    return named


def headline_item(tier: TierName, group: str | None) -> str:
    """Return the item whose curve is the headline's.

    Args:
        tier: The tier of the objective.
        group: The group that the objective is about; None for all items.

    Returns:
        The overall item, or that of the group.
    """
    if group is None:
        return OVERALL
    return group if TIERS[tier].rates else group_item(group)
