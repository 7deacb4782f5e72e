"""Figures for papers: a stage's curves and forest plots as SVG, from its stored tables.

<results>/figures/<tier>_curves.svg   the headline metric of every item over steps
<results>/figures/<tier>_measures.svg the secondary metrics of every item, likewise
<results>/figures/<tier>_forest.svg   deltas of the recommended step against the bridge, those of the
                                      first secondary metric next to them
"""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.files import atomic_path
from evaluation.reporting.headlines import has_own_forest, in_forest, name_in_forest, shown_metrics
from evaluation.reporting.pages.curves import Series, is_logarithmic, stage_series
from evaluation.reporting.palette import LIGHT
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.deltas_file import DELTAS, StageDeltas
from evaluation.results.stage_files import RECOMMENDATION, Recommendation, chosen_among
from evaluation.results.table import SUMMARY, read_rows
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = {"better": "^", "worse": "v", "unclear": "o"}
ACROSS = 4
SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text, to be edited and searched
    "svg.hashsalt": "staged-evaluation",  # the same results give the same file
    "font.family": "sans-serif",
    "font.size": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def write_figures(plan: StagePlan) -> list[Path]:
    """Write a stage's figures from its tables; one without data has a sentence in place of a plot.

    Figures of a bridge or a tier that the stage no longer has are removed.

    Raises:
        ResultsError: The stage has no tables yet, or damaged ones.
    """
    series, rows = stage_series(read_rows(plan.results / SUMMARY)), _deltas(plan)
    for (kind, tier), path in plan.figures.items():
        deltas = [row for row in rows if row.tier == tier]
        if kind == "forest":
            drawn = _forest(deltas)
        else:
            drawn = _curves(kind, [curve for curve in series if curve["tier"] == tier])
        if drawn is None:
            drawn = _empty(
                f"no results of {tier} yet"
                if kind in ("curves", "measures")
                else f"{tier}: no step has been compared with the bridge yet"
            )
        _save(drawn, path, f"{plan.name}: {TIERS[tier].title}, {kind}")
    expected = (
        plan.figures_folder / f"{t.name}_{k}.svg" for t in TIERS.values() for k in t.figures
    )
    for path in set(expected) - set(plan.figures.values()):
        path.unlink(missing_ok=True)
    return list(plan.figures.values())


def _deltas(plan: StagePlan) -> list[DeltaRow]:
    """Return the deltas of the recommended or else the last step, best first."""
    path = plan.results / DELTAS
    rows = StageDeltas.read(path).deltas if path.exists() else ()
    steps = {row.step for row in rows if row.step is not None}
    if not steps:
        return []
    step = chosen_among(steps, Recommendation.read(plan.results / RECOMMENDATION))
    step_rows = [row for row in rows if row.step == step]
    return sorted(step_rows, key=lambda row: -row.delta if row.higher_is_better else row.delta)


def _new(width: float, height: float) -> "Figure":
    # Without pyplot: figures need neither a window nor shared state.
    os.environ.setdefault("MPLBACKEND", "svg")
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update(SETTINGS)
    return Figure(figsize=(width, height), layout="constrained")


def _save(drawn: "Figure", path: Path, title: str) -> None:
    """Save a figure; `title` is metadata of the file only, as a paper has its own caption."""
    with atomic_path(path) as temporary:
        drawn.savefig(temporary, format="svg", metadata={"Date": None, "Title": title})


def _empty(text: str) -> "Figure":
    drawn = _new(4, 1)
    drawn.text(0.5, 0.5, text, ha="center", va="center")
    return drawn


def _curves(kind: str, series: Sequence[Series]) -> "Figure | None":
    """Draw a panel for each item; each metric begins a new row, labelled with its name."""
    shown = shown_metrics((line["tier"], line["item"], line["metric"]) for line in series)
    metrics: dict[str, list[Series]] = {}
    for curve in series:
        is_shown = curve["metric"] == shown[curve["tier"], curve["item"]]
        is_secondary = TIERS[curve["tier"]].metric(curve["metric"]).is_secondary
        if is_shown if kind == "curves" else is_secondary:
            metrics.setdefault(curve["metric"], []).append(curve)
    groups = list(metrics.values())
    if not groups:
        return None
    across = min(max(map(len, groups)), ACROSS)
    down = [-(-len(curves) // across) for curves in groups]
    drawn = _new(across * 2.1, sum(down) * 1.6 + 0.3)
    axes = iter(drawn.subplots(sum(down), across, squeeze=False).ravel())
    for curves, rows in zip(groups, down, strict=True):
        for place, axis in enumerate(islice(axes, rows * across)):
            axis.set_visible(place < len(curves))
            if place < len(curves):
                _curve(axis, curves[place])
            if place % across == 0:
                axis.set_ylabel(_axis_name(curves[0]))
    drawn.supxlabel("step")
    return drawn


def _axis_name(series: Series) -> str:
    metric = TIERS[series["tier"]].metric(series["metric"])
    if metric.unit == "fraction":
        return f"{metric.name}, %"
    return metric.name if metric.unit == metric.name else f"{metric.name}\n{metric.unit}"


def _in_percent(axis: Any) -> None:
    """Label an axis of fractions in percent, or of their changes in points, as pages do."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}")


def _curve(axis: "Axes", series: Series) -> None:
    points = series["points"]
    steps = [point["step"] for point in points]
    axis.plot(
        steps,
        [point["value"] for point in points],
        color=LIGHT["main"],
        marker="o" if len(steps) <= 60 else None,
        markersize=3,
        linewidth=1.2,
    )
    banded = [point for point in points if point["low"] is not None]
    axis.fill_between(
        [point["step"] for point in banded],
        [point["low"] for point in banded],
        [point["high"] for point in banded],
        color=LIGHT["main"],
        alpha=0.16,
        linewidth=0,
    )
    if series["bridge"] is not None:
        axis.axhline(series["bridge"]["value"], color=LIGHT["bridge"], ls="--", lw=1)
    if series["chance"] is not None:
        axis.axhline(series["chance"], color=LIGHT["unclear"], ls=":", lw=1)
    if is_logarithmic(series):
        axis.set_yscale("log")
    if TIERS[series["tier"]].metric(series["metric"]).unit == "fraction":
        low, high = axis.get_ylim()
        if all(0 <= point["value"] <= 1 for point in points):
            axis.set_ylim(max(low, 0.0), min(high, 1.0))  # there is nothing beyond
        _in_percent(axis.yaxis)
    axis.set_title(_plain(series["item"], 30), fontsize=8)
    axis.locator_params(axis="x", nbins=4)


def _forest(rows: Sequence[DeltaRow]) -> "Figure | None":
    sides = [[row for row in rows if is_shown(row)] for is_shown in (in_forest, has_own_forest)]
    sides = [side for side in sides if side]
    if not sides:
        return None
    drawn = _new(5.2 * len(sides), 0.24 * max(map(len, sides)) + 0.9)
    for axis, side in zip(drawn.subplots(1, len(sides), squeeze=False).ravel(), sides, strict=True):
        _forest_axis(axis, side)
    return drawn


def _forest_axis(axis: "Axes", rows: Sequence[DeltaRow]) -> None:
    for height, row in enumerate(reversed(rows)):
        _delta(axis, height, row)
    reach = max(abs(x or 0.0) for row in rows for x in (row.delta, row.low, row.high)) or 1.0
    axis.set_xlim(-1.05 * reach, 1.05 * reach)
    axis.axvline(0, color=LIGHT["unclear"], lw=0.8, zorder=0)
    axis.set_yticks(range(len(rows)), [_plain(name_in_forest(row), 36) for row in reversed(rows)])
    first, is_rate = rows[0], TIERS[rows[0].tier].rates
    lower = "" if first.definition.higher_is_better or is_rate else " (lower is better)"
    what = "rate" if is_rate else first.definition.name
    sides = f"of step {first.step} against {first.bridge}"
    unit = ", points" if first.definition.unit == "fraction" else ""
    if unit:
        _in_percent(axis.xaxis)
    axis.set_xlabel(f"Δ {what}{unit}{lower}, 95 % interval\n{sides}")


def _delta(axis: "Axes", height: int, row: DeltaRow) -> None:
    flag = row.flag or "unclear"
    if row.low is not None and row.high is not None:
        axis.plot([row.low, row.high], [height, height], color=LIGHT[flag], lw=1.4)
    if row.mde is not None:
        axis.plot(
            [-row.mde, row.mde],
            [height, height],
            color=LIGHT["line"],
            lw=6,
            solid_capstyle="butt",
            zorder=0,
        )
    axis.plot(row.delta, height, MARKERS[flag], color=LIGHT[flag], markersize=5)


def _plain(name: str, most: int) -> str:
    """Return a name as matplotlib draws it: a dollar sign would begin a formula."""
    return (name if len(name) <= most else f"{name[: most - 1]}…").replace("$", r"\$")
