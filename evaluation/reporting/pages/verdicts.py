"""Objectives and the recommendation on pages, curves of their groups, and advice on undecided ones."""

from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.bridge.delta import OVERALL, group_item
from evaluation.errors import first_few
from evaluation.reporting.headlines import steps_in_words
from evaluation.reporting.pages.curves import Series, stage_series
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.objective_rows import ObjectiveRow
from evaluation.results.stage_files import QualityRow, chosen_among
from evaluation.settings.tiers import TIERS, TierName

_NAMED = 6
"""Most items that a sentence names."""


def group_series(stage: StageResults) -> list[Series]:
    """Return a curve of each group of items that an objective is about, with a note of its items.

    Left out are groups of the suite, which have curves like any item, and groups of rates, which are
    items.
    """
    rows: list[dict[str, Any]] = []
    known: dict[tuple[str, str], dict[str, str]] = {}
    for step in sorted(stage.deltas):
        for objective in stage.deltas[step].objectives:
            named = stage.plan.suite.tier_groups(objective.tier)
            if objective.group and objective.group not in named and not TIERS[objective.tier].rates:
                item, metric = group_item(objective.group), objective.metric.removeprefix("delta_")
                about: dict[str, Any] = {"tier": objective.tier, "item": item, "metric": metric}
                about |= {"chance": None, "low": None, "high": None, "step": step}
                bounds = {"delta_low": objective.low, "delta_high": objective.high}
                rows.append({**about, "role": "step", "value": objective.value, **bounds})
                rows.append({**about, "role": "bridge", "value": objective.bridge_value})
                note = f"Mean of {', '.join(objective.items)}."
                known[objective.tier, item] = {"group": objective.group, "note": note}
    return [{**curve, **known[curve["tier"], curve["item"]]} for curve in stage_series(rows)]


def advice(stage: StageResults) -> dict[str, Any] | None:
    """Return the recommendation as pages show it; None if no step is recommended."""
    content = stage.recommendation
    if content is None or content.step is None:
        return None
    return {
        **content.model_dump(),
        "kind": str(content.kind).capitalize(),
        "named": stage.plan.label(content.step),
        "similar_steps": steps_in_words([similar.step for similar in content.similar], ", ".join),
    }


def headline_item(tier: TierName, group: str | None) -> str:
    """Return the item whose curve is the headline's: the overall item, or that of the group."""
    if group is None:
        return OVERALL
    return group if TIERS[tier].rates else group_item(group)


def advice_of(stage: StageResults, rows: Sequence[QualityRow]) -> Iterator[str]:
    """Yield a sentence on each undecided objective of the recommended step, or else of the last step."""
    step = chosen_among(stage.deltas, stage.recommendation)
    if step is None:
        return
    for objective in stage.judged(step).objectives:
        if objective.verdict == "undecided":
            yield _of_objective(objective, [row for row in rows if is_part(objective, row)])


def is_part(objective: ObjectiveRow, row: QualityRow) -> bool:
    """Return whether an item's metric is what an objective's mean is over."""
    metric = objective.tier, objective.definition.name
    return (row.tier, row.metric) == metric and row.item in objective.items


def _of_objective(objective: ObjectiveRow, own: Sequence[QualityRow]) -> str:
    """Return a sentence for an objective."""
    tier, metric = TIERS[objective.tier], objective.definition
    group = f" of {objective.group}" if objective.group else ""
    text = f"{objective.tier}: {metric.words}{group} is undecided"
    count = len(own) or len(objective.items)
    small = [row for row in own if row.too_small]
    return f"{text}{_small(small, count, tier.item) if small else ''}"


def _small(rows: Sequence[QualityRow], of: int, item: str) -> str:
    """List the items with too few units, the one with the smallest share of the needed number first."""
    named = []
    for row in sorted(rows, key=lambda row: row.n / (row.needed or 1)):
        more = "" if row.in_split is None else f", its split has {row.in_split:,}"
        if row.in_split is not None and row.in_split <= row.n:
            more = ", its split has no more"
        named.append(f"{row.item} ({row.n:,} of {row.needed:,}{more})")
    return f". Too small alone: {len(rows)} of {of} {_plural(item, of)}: {first_few(named, _NAMED)}"


def _plural(item: str, count: int) -> str:
    if count == 1:
        return item
    return f"{item[:-1]}ies" if item.endswith("y") else f"{item}s"
