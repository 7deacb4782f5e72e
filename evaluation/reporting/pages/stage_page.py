"""A stage's page: one file of HTML that needs no network, in the order of a reader's questions.

Did this stage achieve its objective? Which checkpoint should we use next? Where did it gain and lose? Can
I trust it?
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.errors import CacheError, ResultsError, first_few
from evaluation.reporting.flips.stage import in_order, stage_flips
from evaluation.reporting.headlines import (
    has_own_forest,
    in_forest,
    provisional,
    steps_in_words,
    tier_words,
)
from evaluation.reporting.pages.candidates import candidate_table
from evaluation.reporting.pages.curves import Series, stage_series, with_scales
from evaluation.reporting.pages.decision import stage_decision
from evaluation.reporting.pages.levels import with_levels
from evaluation.reporting.pages.long_context import length_series, position_series
from evaluation.reporting.pages.page import (
    DEFAULTS,
    DELTAS_DEFAULTS,
    LARGEST,
    SpaceLeft,
    delta_row,
    page_link,
    render,
)
from evaluation.reporting.pages.provenance import jobs_table, provenance_tables, quality_tables
from evaluation.reporting.pages.provenance_header import stage_header
from evaluation.reporting.pages.verdicts import advice, group_series, headline_item
from evaluation.reporting.status import failures
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.reporting.tables.summary import summary_rows
from evaluation.reporting.viewer.items import read_items, some_items, tasks_of
from evaluation.results.delta_notes import warnings_in_words
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import read_folder
from evaluation.results.stage_files import PAGE, TaskQuality
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import results_folder
from evaluation.settings.tiers import TIERS

log = logging.getLogger(__name__)

SHOWN_ANSWERS = 3
"""Questions of each task that a stage without a bridge shows, of wrong and of right answers each."""

DELTAS_SHARE = 0.75
"""Share of the space left by curves that deltas may take; flips have the rest."""


def stage_page(stage: StageResults, quality: TaskQuality) -> str:
    """Return the page of the results that exist, which also names what is missing."""
    chosen, last = stage.chosen, [stage.last.results.folder] if stage.last is not None else []
    curves = [*stage_series(summary_rows(stage)), *group_series(stage)]
    series, level_notes = with_levels(curves, stage.plan.config, last, 1)
    data: dict[str, Any] = {
        "tiers": tier_words(),
        "stage": stage.plan.name,
        "bridge": stage.bridge.results.label if stage.bridge else None,
        "pages": {"front": page_link(Path(stage.plan.config.results) / PAGE, stage.plan.results)},
        "defaults": _defaults(stage.plan, chosen),
        "series": with_scales(series),
        "positions": position_series(stage),
        "lengths": length_series(stage),
        **({"names": stage.plan.stage.names} if stage.plan.stage.names else {}),
    }
    words = _words(stage, series, quality) | {"levels": level_notes}
    for part in ("positions", "lengths"):
        words[part] = stage.plan.label(chosen) if chosen is not None and data[part] else None
    space = SpaceLeft(LARGEST - len(render("stage.html", data, **words).encode()))
    first = [] if chosen is None else [chosen, *sorted(stage.steps)[-1:]]
    data["deltas"], data["without_deltas"] = _deltas(
        stage, SpaceLeft(space.left * DELTAS_SHARE), first
    )
    space.take(data["deltas"])
    data["flips"] = stage_flips(stage, space, first)
    data["answers"] = _answers(stage, space) if stage.plan.stage.bridge is None else []
    return render("stage.html", data, **words)


def _answers(stage: StageResults, space: SpaceLeft) -> list[dict[str, Any]]:
    """Return a few questions of each task with the answers of the shown step, as far as there is space."""
    if stage.chosen is None:
        return []
    plan, checkpoint = stage.plan, results_folder(stage.chosen)
    answers, unread = [], dict[str, Exception]()
    for tier, tasks in tasks_of(read_folder(plan.step_folder(stage.chosen))).items():
        if TIERS[tier].kind == "nats":
            continue
        for task in tasks:
            try:
                items = read_items(plan, checkpoint, tier, task)
            except (ResultsError, CacheError) as error:
                unread[task] = error
                continue
            entry = {"tier": tier, "item": task, **some_items(items, SHOWN_ANSWERS)}
            if items and space.take(entry):
                answers.append(entry)
    if unread:
        why = next(iter(unread.values()))
        log.warning("%s: questions of %s are not shown: %s", plan.name, first_few([*unread]), why)
    return answers


def _defaults(plan: StagePlan, chosen: int | None) -> dict[str, Any]:
    """Return the default of each choice; choices about the bridge only if there is one."""
    if plan.stage.bridge is None:
        return {"step": chosen, "item": "", "words": "", **DEFAULTS}
    about_bridge = {"band": "paired", **DELTAS_DEFAULTS, "words": "", "change": ""}
    return {"step": chosen, "item": "", "flip": "", **DEFAULTS, **about_bridge}


def _words(stage: StageResults, series: Sequence[Series], quality: TaskQuality) -> dict[str, Any]:
    """Return the words and tables of the page."""
    plan = stage.plan
    bridges = (row.bridge for content in stage.deltas.values() for row in content.deltas)
    advised = stage.recommendation
    return {
        "title": plan.name,
        "run": Path(plan.config.results).name,
        "chosen": stage.chosen,
        "chosen_label": "" if stage.chosen is None else plan.label(stage.chosen),
        "results": plan.config.results,
        "header": stage_header(stage),
        "jobs": jobs_table(stage),
        "verdict": stage.verdict,
        "provisional": provisional(advised),
        "deleted": steps_in_words(stage.deleted) if stage.deleted else None,
        "advice": advice(stage),
        "decision": stage_decision(stage, tuple(quality.advice)),
        "no_advice": advised.why if advised else "the bridge has not been compared yet",
        "has_bridge": plan.stage.bridge is not None,
        "bridge": next(bridges, None),
        "objective": [objective.title for objective in plan.stage.objective],
        "missing": stage.missing,
        "warnings": warnings_in_words(stage.deltas),
        "failures": [*failures(plan, stage.requested), *stage.damaged],
        "candidates": candidate_table(stage),
        "noise": _noise(stage, series),
        "to_do": quality.advice,
        "trust": [*quality_tables(quality), *provenance_tables(stage)],
    }


def _noise(stage: StageResults, series: Sequence[Series]) -> str | None:
    """Return the noise of the headline's curve, next to its interval."""
    headline = stage.recommendation.headline if stage.recommendation else None
    item = headline_item(headline.tier, headline.group) if headline else OVERALL
    wanted = (headline.tier, item, headline.metric) if headline else None
    for curve in series:
        noise = curve["noise"]
        if (curve["tier"], curve["item"], curve["metric"]) == wanted and noise:
            metric = TIERS[curve["tier"]].metric(curve["metric"])
            of = "" if curve["item"] == OVERALL else f" of {curve.get('group', curve['item'])}"
            half = noise["half"]
            items = (
                ""
                if half is None
                else f"; over items ± {metric.change(half, sign='')} at the last checkpoint"
            )
            return (
                f"{curve['tier']} {metric.words}{of} has a noise of {metric.change(noise['sd'], sign='')} "
                f"(standard deviation between neighbouring checkpoints, without the trend){items}"
            )
    return None


def _deltas(
    stage: StageResults, space: SpaceLeft, first: Sequence[int]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the deltas of all steps that there is space for, and the other steps."""
    kept: dict[int, list[dict[str, Any]]] = {}
    left: list[int] = []
    for step in in_order(sorted(stage.deltas), first):
        step_rows = _rows(stage.deltas[step])
        if left or not space.take(step_rows):
            left.append(step)
        else:
            kept[step] = step_rows
    rows = [row for step in sorted(kept) for row in kept[step]]
    return rows, sorted(left)


def _rows(content: StepDeltas) -> list[dict[str, Any]]:
    rows = []
    for row in content.deltas:
        # A loss is in all units, of which the reader chooses one.
        is_loss = TIERS[row.tier].kind == "nats" and not row.definition.is_secondary
        headline = is_loss or in_forest(row) or has_own_forest(row)
        values = {"step": row.step, "value": row.value, "bridge": row.bridge_value}
        rows.append(delta_row(row, **values, headline=headline))
    return rows
