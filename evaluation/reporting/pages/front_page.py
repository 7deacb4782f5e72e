"""The front page: the stages, the latest first, then what they share on one axis of training steps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.checkpoints.subjects import steps_so_far
from evaluation.errors import ResultsError, first_few
from evaluation.files import write_text
from evaluation.reporting.headlines import loss_units, provisional, tier_words
from evaluation.reporting.pages.curves import (
    Series,
    follows,
    joined_series,
    stage_series,
    with_scales,
)
from evaluation.reporting.pages.decision import stage_decisions
from evaluation.reporting.pages.levels import with_levels
from evaluation.reporting.pages.page import DEFAULTS, page_link, render, write_page
from evaluation.reporting.pages.provenance_header import front_header
from evaluation.reporting.pages.verdicts import advice, group_series, headline_item
from evaluation.reporting.status import failures
from evaluation.reporting.tables.stage_results import StageResults, read_stage
from evaluation.reporting.tables.summary import summary_rows
from evaluation.results.comparison_file import COMPARISON, COMPARISON_PAGE, Comparison, LeadRow
from evaluation.results.stage_files import OVERVIEW, PAGE, chosen_among
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS


def write_front_page(plans: Mapping[str, StagePlan]) -> Path:
    """Write the page that shows all stages, the latest first, and names what is missing.

    Also write the overview that Snakemake's report begins with.
    """
    config = next(iter(plans.values())).config
    output = Path(config.results) / PAGE
    stages = {name: read_stage(plan, steps_so_far(plan)) for name, plan in plans.items()}
    series = {name: stage_series(summary_rows(stage)) for name, stage in stages.items()}
    sparks = {n: _sparks(stage, [*series[n], *group_series(stage)]) for n, stage in stages.items()}
    data = {
        "tiers": tier_words(),
        "stage": None,
        "pages": _pages(plans, output),
        "defaults": DEFAULTS,
        "sparks": {name: with_scales(spark) for name, spark in sparks.items()},
        "series": with_scales(_joined(stages, series)),
    }
    decisions = stage_decisions(stages)
    in_order = [*decisions, *(name for name in reversed([*stages]) if name not in decisions)]
    cards = [_card(stages[name], sparks[name]) for name in in_order]
    runs = _runs_in_words(config)
    words = {
        "title": "Evaluation of the stages",
        "run": Path(config.results).name,
        "stages": cards,
        "header": front_header(stages),
        "decisions": decisions,
    }
    other = COMPARISON_PAGE if config.runs else None
    write_page(output, render("front.html", data, **words, runs=runs, comparison=other))
    write_text(output.with_name(OVERVIEW), _overview(cards, runs))
    return output


def _pages(plans: Mapping[str, StagePlan], output: Path) -> dict[str, dict[str, str]]:
    """Return links to the stages' pages, and to that of several runs."""
    links = {name: plan.results / PAGE for name, plan in plans.items()}
    if next(iter(plans.values())).config.runs:
        links[COMPARISON_PAGE] = output.with_name(COMPARISON_PAGE)
    return {name: page_link(page, output.parent) for name, page in links.items()}


def _joined(
    stages: Mapping[str, StageResults], series: Mapping[str, Sequence[Series]]
) -> list[Series]:
    plans = {name: stage.plan for name, stage in stages.items()}
    last = [stage.last.results.folder for stage in stages.values() if stage.last is not None]
    config = next(iter(plans.values())).config
    return with_levels(joined_series(series, follows(plans)), config, last, len(plans))[0]


def _runs_in_words(config: Config) -> list[dict[str, Any]]:
    """Return for each configured run its error, or sentences on which run is better from which step on."""
    if not config.runs:
        return []
    try:
        content = Comparison.read(Path(config.results) / COMPARISON)
    except ResultsError as error:
        return [{"name": ", ".join(config.runs), "error": str(error), "leads": []}]
    return [
        {
            "name": comparison.run_b,
            "error": comparison.error,
            "leads": [
                f"{stage.title}: {lead.sentence}"
                for stage in comparison.stages
                for lead in stage.leads
                if _is_headline(lead, stage.leads)
            ],
        }
        for comparison in content.comparisons
    ]


def _is_headline(lead: LeadRow, leads: Sequence[LeadRow]) -> bool:
    """Return whether a lead is on an overall headline, or on what replaces it where tokenizers differ."""
    metrics = {
        lead_row.metric.removeprefix("delta_")
        for lead_row in leads
        if (lead_row.tier, lead_row.item) == (lead.tier, OVERALL)
    }
    tier, metric = TIERS[lead.tier], lead.metric.removeprefix("delta_")
    is_loss = tier.kind == "nats" and not tier.metric(metric).is_secondary
    return lead.item == OVERALL and (is_loss or metric == tier.headline_of(metrics))


def _overview(cards: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a few lines of reStructuredText on each stage, with which Snakemake's report begins."""
    lines = [line for card in cards for line in (*_in_words(card), "")]
    for run in runs:
        lead = [f"not compared: {run['error']}"] if run["error"] else run["leads"]
        names = f"**A is this run, B is {_plain(run['name'])}**"
        lines += [f"| {names}", *(f"| {_plain(text)}" for text in lead), ""]
    return "\n".join(lines)


def _in_words(card: Mapping[str, Any]) -> Iterator[str]:
    similar = card["similar"]
    advice = card["advice"] or card["why_not"]
    advice += f"; not significantly different: {similar}" if similar else ""
    yield f"| **{_plain(card['name'])}: {_plain(card['verdict'] + card['provisional'])}**"
    yield f"| {_plain(advice)}"
    yield f"| {_plain(card['headline'])}"
    if card["objective"]:
        yield f"| *{_plain('; '.join(card['objective']))}*"
    if card["missing"]:
        yield f"| missing: {_plain(card['missing'])}"
    for failure in card["failures"]:
        yield f"| failed: {_plain(failure)}"


def _plain(text: str) -> str:
    """Escape what reStructuredText would read as markup."""
    return re.sub(r"([^\w\s]|_)", r"\\\1", " ".join(text.split()))


def _sparks(stage: StageResults, series: Sequence[Series]) -> list[Series]:
    """Return the headline's overall curve in each of its units, the headline's unit first.

    Without an objective, it is the curve of the last tier that has one.
    """
    objectives = stage.plan.stage.objective
    objective = next((objective for objective in objectives if objective.want == "improve"), None)
    for tier in [objective.tier] if objective else list(reversed(stage.plan.tiers)):
        item = headline_item(tier, objective.group if objective else None)
        curves = {
            curve["metric"]: curve
            for curve in series
            if (curve["tier"], curve["item"]) == (tier, item)
        }
        names = [objective.decided_on.name if objective else TIERS[tier].headline_of(curves)]
        if TIERS[tier].kind == "nats":
            names += [name for name in loss_units() if name not in names]
        if shown := [curves[name] for name in names if name in curves]:
            return [{**curve, "sentence": _headline(stage, curve)} for curve in shown]
    return []


def _card(stage: StageResults, sparks: Sequence[Series]) -> dict[str, Any]:
    objectives = [objective.title for objective in stage.plan.stage.objective]
    advised = advice(stage)
    why_not = stage.recommendation.why if stage.recommendation else "no recommendation yet"
    return {
        "name": stage.plan.name,
        "verdict": stage.verdict or ("undecided" if objectives else "no objective"),
        "provisional": provisional(stage.recommendation),
        "objective": objectives,
        "advice": f"{advised['kind']}: {advised['named']}" if advised else None,
        "similar": advised["similar_steps"] if advised else "",
        "why_not": why_not if objectives else "no recommendation, as the stage has no objective",
        "headline": sparks[0]["sentence"] if sparks else "no results yet",
        "counts": _counts(stage),
        "missing": first_few(stage.missing, 4),
        "failures": [*failures(stage.plan, stage.requested), *stage.damaged],
    }


def _headline(stage: StageResults, spark: Series) -> str:
    """Return the value at the recommended (or else the last) step, with its interval if it has one."""
    points = {point["step"]: point for point in spark["points"]}
    chosen = chosen_among(points, stage.recommendation)
    assert chosen is not None  # a curve has points of steps
    point = points[chosen]
    low, high = point["low"], point["high"]
    paired = ""
    if low is None and point["paired_low"] is not None:
        low, high, paired = point["paired_low"], point["paired_high"], " paired with the bridge"
    metric = TIERS[spark["tier"]].metric(spark["metric"])
    bounds = "no interval"
    if low is not None:
        bounds = f"[{', '.join(metric.level(one) for one in (low, high))}]{paired}"
    bridge = spark["bridge"]
    of = stage.bridge.results.label if stage.bridge else "the bridge"
    against = f", {metric.level(bridge['value'])} at {of}" if bridge else ""
    value = f"{metric.level(point['value'])} {bounds} at {stage.plan.label(chosen)}{against}"
    group = "" if spark["item"] == OVERALL else f" of {spark.get('group', spark['item'])}"
    return f"{TIERS[spark['tier']].title} ({spark['tier']}), {metric.words}{group}: {value}"


def _counts(stage: StageResults) -> str | None:
    """Return how many items are significantly better and worse at the chosen step."""
    if stage.chosen is None or stage.chosen not in stage.deltas:
        return None
    flags = [row.flag for row in stage.deltas[stage.chosen].deltas if row.primary]
    better, worse = flags.count("better"), flags.count("worse")
    unclear = len(flags) - better - worse
    return f"Of {len(flags)} slices, tasks and rates: {better} better, {worse} worse, {unclear} unclear"
