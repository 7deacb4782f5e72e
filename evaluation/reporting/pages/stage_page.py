"""A stage's page: one file of HTML that needs no network, in the order of a reader's questions.

Did this stage do what it was for? Which checkpoint do we take on? Where did it gain and lose? Can
I trust it?
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.power import power_sentence
from evaluation.reporting.flips.stage import in_order, stage_flips
from evaluation.reporting.headlines import (
    beside_forest,
    change_in_words,
    in_forest,
    name_in_forest,
    provisional,
    steps_in_words,
    tier_words,
)
from evaluation.reporting.pages.aims import group_name, group_series, verdict_rows
from evaluation.reporting.pages.curves import Series, stage_series
from evaluation.reporting.pages.levels import levels
from evaluation.reporting.pages.page import (
    DEFAULTS,
    LARGEST,
    Links,
    SpaceLeft,
    packed_deltas,
    packed_series,
    page_link,
    render,
    seven_digits,
)
from evaluation.reporting.pages.provenance import jobs_table, provenance_tables
from evaluation.reporting.pages.quality import quality_tables
from evaluation.reporting.pages.strip import run_name, stage_strip
from evaluation.reporting.status import failures
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.reporting.tables.summary import summary_rows
from evaluation.reporting.tables.task_quality import stage_quality
from evaluation.results.deltas_file import StepDeltas, warnings_in_words
from evaluation.results.stage_files import PAGE, Recommendation, TaskQuality
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

DELTAS_SHARE = 0.75
"""Of the space that curves leave, what deltas may take; flips have the rest."""


def stage_page(found: StageResults, quality: TaskQuality | None = None) -> str:
    """The page of whatever results there are, which says what is missing.

    `quality` is computed if it is not given.
    """
    chosen, last = chosen_step(found), [one.results.folder for one in found.steps.values()][-1:]
    against = levels(found.plan.config, last, 1)
    series = against.beside([*stage_series(summary_rows(found)), *group_series(found)])
    data: dict[str, Any] = {
        "tiers": tier_words(),
        "stage": found.plan.name,
        "bridge": found.bridge.results.label if found.bridge else None,
        "pages": _links(found.plan),
        "defaults": {**DEFAULTS, "step": chosen},
        "series": packed_series(series),
        "power": _power(found.plan),
    }
    words = _words(found, series, quality or stage_quality(found)) | {"levels": against.notes}
    space = SpaceLeft(LARGEST - len(render("stage.html", data, **words).encode()))
    first = [] if chosen is None else [chosen, max(found.steps)]
    data["deltas"], data["without_deltas"] = _deltas(
        found, SpaceLeft(space.left * DELTAS_SHARE), first
    )
    space.take(data["deltas"])
    data["flips"] = stage_flips(found, space, first)
    return render("stage.html", data, **words)


def _links(plan: StagePlan) -> Links:
    return {"front": page_link(Path(plan.config.results) / PAGE, plan.results)}


def _words(found: StageResults, series: Sequence[Series], quality: TaskQuality) -> dict[str, Any]:
    """What the page says in words and tables."""
    plan = found.plan
    bridges = (row.bridge for content in found.deltas.values() for row in content.deltas)
    advised = found.recommendation
    return {
        "title": plan.name,
        "run": run_name(plan),
        "chosen": chosen_step(found),
        "strip": stage_strip(found, chosen_step(found)),
        "jobs": jobs_table(found),
        "verdict": stage_verdict(found),
        "provisional": provisional(advised),
        "gone": steps_in_words(found.gone) if found.gone else None,
        "advice": advice(found),
        "no_advice": advised.why if advised else "the bridge has not been compared yet",
        "has_bridge": plan.stage.bridge is not None,
        "bridge": next(bridges, None),
        "objective": [aim_title(aim.model_dump()) for aim in plan.stage.objective],
        "missing": found.missing,
        "warnings": warnings_in_words(found.deltas),
        "failures": [*failures(plan, found.asked), *found.damaged],
        "verdicts": verdict_rows(found, chosen_step(found)),
        "noise": _noise(found, series),
        "to_do": quality.advice,
        "trust": [*quality_tables(quality), *provenance_tables(found)],
    }


def _power(plan: StagePlan) -> dict[str, str]:
    """What so many prompts can show, of each tier of rates."""
    tiers = [TIERS[name] for name in plan.tiers if TIERS[name].rates]
    counts = {tier: len(getattr(plan.suite, tier.section)) for tier in tiers}
    return {tier.name: power_sentence(count, tier.unit) for tier, count in counts.items()}


def chosen_step(found: StageResults) -> int | None:
    """The recommended step, or the last one."""
    recommended = found.recommendation.step if found.recommendation else None
    if recommended in found.steps:
        return recommended
    return max(found.steps, default=None)


def stage_verdict(found: StageResults) -> str | None:
    """Of the step that is recommended."""
    return found.recommendation.verdict if found.recommendation else None


def advice(found: StageResults) -> dict[str, Any] | None:
    """The recommendation as pages show it; None if there is none."""
    content = found.recommendation
    if content is None or content.step is None:
        return None
    kind = (content.kind or "least bad").capitalize()
    steps = [entry.step for entry in content.beside]
    return {**content.model_dump(), "kind": kind, "beside": _beside(content), "beside_steps": steps}


def _beside(content: Recommendation) -> list[str]:
    """Steps that are not significantly different from the recommended one, with their differences."""
    known = content.headline and TIERS[content.headline.tier].metric(content.headline.metric)
    told = []
    for one in content.beside:
        has_change = known is not None and one.low is not None
        change = (
            change_in_words(known, one.delta, one.low, one.high) if known and has_change else ""
        )
        told.append(f"step {one.step}{f' ({change})' if change else ''}")
    return told


def aim_title(aim: Mapping[str, Any]) -> str:
    """An aim in words, e.g. `tier2 (hq): improve by more than 0.02 nats per token`."""
    tier = TIERS[aim["tier"]]
    metric = f" {aim['metric']}" if aim["metric"] else ""
    group = f" ({aim['group']})" if aim["group"] else ""
    unit = tier.metric(aim["metric"] or tier.headline).unit
    size = f"{aim['margin']:g} {unit}"
    if unit == "fraction":
        points = f"{100 * aim['margin']:g}"
        size = f"{points} point{'' if points == '1' else 's'}"
    margin = f"by more than {size}" if aim["want"] == "improve" else f"within {size}"
    return f"{aim['tier']}{metric}{group}: {aim['want']} {margin}"


def _noise(found: StageResults, series: Sequence[Series]) -> str | None:
    """How much the headline's curve moves between its last steps, beside its interval."""
    headline = found.recommendation.headline if found.recommendation else None
    item = headline_item(headline.tier, headline.group) if headline else OVERALL
    wanted = (headline.tier, item, headline.metric) if headline else None
    for one in series:
        spread = one["spread"]
        if (one["tier"], one["item"], one["metric"]) == wanted and spread:
            of = "" if one["item"] == OVERALL else f" of {one['item']}"
            items = "" if spread["half"] is None else f"; over items ± {spread['half']:.3g}"
            return (
                f"{one['tier']} {one['metric']}{of} scatters by {spread['sd']:.3g} (standard deviation) "
                f"about a straight line over the last {spread['steps']} checkpoints{items}"
            )
    return None


def headline_item(tier: TierName, group: str | None) -> str:
    """The item whose curve is the headline's."""
    if group is None:
        return OVERALL
    return group if TIERS[tier].rates else group_name(group)


def _deltas(
    found: StageResults, space: SpaceLeft, first: Sequence[int]
) -> tuple[dict[str, Any], list[int]]:
    """Packed deltas of all steps that there is room for, and the steps that there is none for."""
    kept: dict[int, list[dict[str, Any]]] = {}
    left: list[int] = []
    for step in in_order(sorted(found.deltas), first):
        rows = _rows(found.deltas[step])
        if left or not space.take(packed_deltas(rows)["rows"]):
            left.append(step)
        else:
            kept[step] = rows
    return packed_deltas(row for step in sorted(kept) for row in kept[step]), sorted(left)


def _rows(content: StepDeltas) -> list[dict[str, Any]]:
    """Rows of packed_deltas; `headline` ones are in a forest plot of their `label`, by `name`."""
    rows = []
    for row in content.deltas:
        metric = row.metric.removeprefix("delta_")
        is_loss = TIERS[row.tier].kind == "nats"  # in the unit that the page is read in
        rows.append(
            {
                **row.model_dump(),
                "metric": metric,
                "bridge": seven_digits(row.bridge_value),
                "headline": is_loss or in_forest(row) or beside_forest(row),
                "name": name_in_forest(row),
                "label": "rates" if TIERS[row.tier].rates else metric,
            }
        )
    return rows
