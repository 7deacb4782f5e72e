"""The page of several runs: which run is better from which step on, overlaid curves, and deltas.

The first run is A of every comparison. The page names pairs of checkpoints whose deltas do not fit; the
table of the comparison has all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.errors import BridgeError, ResultsError
from evaluation.reporting.headlines import loss_units, tier_words
from evaluation.reporting.pages.curves import Key, Series, rank_of, with_scales
from evaluation.reporting.pages.levels import with_levels
from evaluation.reporting.pages.page import (
    DEFAULTS,
    DELTAS_DEFAULTS,
    LARGEST,
    SpaceLeft,
    delta_row,
    page_link,
    render,
)
from evaluation.reporting.tables.values import values_of
from evaluation.results.comparison_file import ComparisonRow, LeadRow, RunComparison
from evaluation.results.read import read_folder
from evaluation.results.stage_files import PAGE
from evaluation.runs.find import Run, RunCheckpoint
from evaluation.runs.matching import paired_stages
from evaluation.settings.config import Config
from evaluation.settings.tiers import TIERS

Points = dict[Key, list[dict[str, Any]]]


def runs_page(
    runs: Sequence[Run], comparisons: Sequence[RunComparison], config: Config | None
) -> str:
    """Return the page of comparisons of the first run with each of the others.

    Args:
        config: Configuration of the first run, whose references are levels of the curves; with it the
            page links to the front page. None if there is none.
    """
    damaged: list[str] = []
    notes: list[str] = []
    curves = _curves(runs, damaged)
    if config is not None:
        for stage, series in curves.items():
            last = [runs[0].stages[stage][-1].folder]
            curves[stage], found = with_levels(series, config, last, len(runs))
            notes += [f"{stage}: {note}" for note in found]
    data: dict[str, Any] = {
        "tiers": tier_words(),
        "other": "B",
        "stage": None,
        "pages": {"front": page_link(Path(PAGE), Path())} if config is not None else {},
        "defaults": _defaults(curves, comparisons),
        "curves": [{"stage": name, "series": with_scales(all_)} for name, all_ in curves.items()],
        "comparisons": [],
    }
    words: dict[str, Any] = {
        "title": "Runs side by side",
        "run": " and ".join(run.name for run in runs),
        "comparisons": [_words(comparison) for comparison in comparisons],
        "leading": _leading(comparisons) if len(comparisons) > 1 else [],
        "damaged": damaged,
        "levels": notes,
        "left_out": [],
        "has_front": config is not None,
    }
    space = SpaceLeft(LARGEST - len(render("runs.html", data, **words).encode()))
    data["comparisons"], words["left_out"] = _deltas(comparisons, space)
    data["defaults"]["pair"] = next((one["label"] for one in data["comparisons"]), "")
    return render("runs.html", data, **words)


def _defaults(
    curves: Mapping[str, Sequence[Series]], comparisons: Sequence[RunComparison]
) -> dict[str, Any]:
    """Return the default of each choice; the pair of runs is added with their deltas.

    A stage that is compared comes first. For losses, runs of two tokenizers share only bits per byte.
    """
    compared = [stage for comparison in comparisons for stage in comparison.stages]
    known = {one["metric"] for series in curves.values() for one in series}
    is_drawn = bool(compared) and compared[0].stage_a in curves
    return {
        **DEFAULTS,
        "unit": next((name for name in loss_units() if name in known), DEFAULTS["unit"]),
        "stage": compared[0].stage_a if is_drawn else next(iter(curves), ""),
        "axis": compared[0].by if compared else "steps",
        "pair": "",
        "step": None,
        **DELTAS_DEFAULTS,
    }


def _curves(runs: Sequence[Run], damaged: list[str]) -> dict[str, list[Series]]:
    """Return the series by A's stages; a run's stage that is paired with none of these is left out."""
    if not runs:
        return {}
    first, curves = runs[0], {}
    for stage in first.stages:
        own = {first.name: _points_of(first.stages[stage], damaged)}
        for other in runs[1:]:
            name = _same_stage(first, other).get(stage)
            if name is not None:
                own[other.name] = _points_of(other.stages[name], damaged)
        curves[stage] = _overlaid(own)
    return curves


def _points_of(checkpoints: Iterable[RunCheckpoint], damaged: list[str]) -> tuple[Points, set[str]]:
    """Return the points of a run's stage and its tokenizers; `damaged` gets what cannot be read."""
    points: Points = {}
    tokenizers: set[str] = set()
    for checkpoint in checkpoints:
        try:
            results = read_folder(checkpoint.folder)
        except ResultsError as error:
            damaged.append(str(error))
            continue
        tokenizers.add(str(results.header.tokenizer.identity))
        for value in values_of(results):
            bounds = {name: getattr(value, name) for name in ("value", "low", "high", "chance")}
            point = {
                "x": checkpoint.step,
                "step": checkpoint.step,
                "tokens": checkpoint.tokens,
                **bounds,
            }
            points.setdefault((value.tier, value.item, value.metric), []).append(point)
    return points, tokenizers


def _overlaid(runs: Mapping[str, tuple[Points, set[str]]]) -> list[Series]:
    """Return a series for each metric of an item, with a line for each run that has it.

    Runs with another tokenizer than the first are only in series whose units do not depend on tokens.
    """
    first = next((tokenizers for _, tokenizers in runs.values() if tokenizers), set())
    lines: dict[Key, list[dict[str, Any]]] = {}
    for number, (name, (points, tokenizers)) in enumerate(runs.items()):
        for key, run_points in points.items():
            if tokenizers <= first or TIERS[key[0]].metric(key[2]).is_free_of_tokens:
                line = {"name": name, "number": number, "points": run_points}
                lines.setdefault(key, []).append(line)
    return [
        {
            "tier": key[0],
            "item": key[1],
            "metric": key[2],
            "chance": lines[key][0]["points"][0]["chance"],
            "points": [],
            "lines": lines[key],
            "bridge": None,
            "noise": None,
        }
        for key in sorted(lines, key=rank_of)
    ]


def _same_stage(ours: Run, theirs: Run) -> dict[str, str]:
    try:
        return dict(paired_stages(ours, theirs))
    except BridgeError:
        return {}


def _words(run_comparison: RunComparison) -> dict[str, Any]:
    """Return the words of a comparison."""
    return {
        **run_comparison.model_dump(exclude={"stages"}),
        "stages": [
            {
                "title": stage.title,
                "matched": stage.matched,
                "corrected_for": stage.corrected_for,
                "notes": stage.notes,
                "overall": [lead for lead in stage.leads if lead.item == OVERALL],
                "items": [lead for lead in stage.leads if lead.item != OVERALL],
            }
            for stage in run_comparison.stages
        ],
    }


def _leading(comparisons: Sequence[RunComparison]) -> list[dict[str, Any]]:
    """Return who leads the first run or is led by it in each overall value of a stage, by the other run."""
    rows: dict[tuple[str, str, str], dict[str, LeadRow]] = {}
    for comparison in comparisons:
        for stage in comparison.stages:
            for lead in (lead for lead in stage.leads if lead.item == OVERALL):
                key = stage.stage_a, lead.tier, lead.metric.removeprefix("delta_")
                rows.setdefault(key, {})[comparison.run_b] = lead
    return [
        {
            "stage": stage,
            "metric": f"{tier.title} ({tier.name}), {tier.metric(metric).words}",
            "leads": leads,
        }
        for (stage, name, metric), leads in rows.items()
        for tier in (TIERS[name],)
    ]


def _deltas(
    comparisons: Sequence[RunComparison], space: SpaceLeft
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the deltas of all stages that there is space for, and the names of the other pairs."""
    shown, left_out = [], []
    for comparison in comparisons:
        for stage in comparison.stages:
            label = f"{comparison.run_a} against {comparison.run_b}, {stage.title}"
            matched = stage.by_match
            leads = {(lead.tier, lead.item, lead.metric) for lead in stage.leads}
            kept: list[dict[str, Any]] = []
            for step, other in reversed(matched):
                rows = [_row(row, leads) for row in matched[step, other]]
                if space.take(rows):
                    kept = [*rows, *kept]
                else:
                    left_out.append(f"{label}, step {step}")
            others = {step: other for step, other in matched if step != other}
            about = {"label": label, "run": comparison.run_b, "stage": stage.stage_a}
            shown.append({**about, "others": others, "deltas": kept})
    return shown, left_out


def _row(row: ComparisonRow, leads: Collection[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a delta as pages draw it; forest plots have the deltas of metrics with a lead."""
    is_led = (row.tier, row.item, row.metric) in leads
    return delta_row(row, step=row.step_a, value=row.value_a, bridge=row.value_b, headline=is_led)
