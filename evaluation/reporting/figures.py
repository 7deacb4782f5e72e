"""What is drawn of a stage, on its page and as `figures/<tier>_<kind>.svg`."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from evaluation.reporting import charts
from evaluation.reporting.charts import Drawn
from evaluation.reporting.flips import WITH_ANSWERS
from evaluation.reporting.judged_stage import JudgedStage
from evaluation.settings.tiers import TIERS


def write_figures(stage: JudgedStage, moved: pd.DataFrame) -> None:
    """Write each tier's charts as SVG, of its headline if it has that, and remove those of earlier data."""
    frame, drawn = charts.headlines(stage.frame), dict[Path, Drawn]()
    for (tier, metric), name, chart in figures(stage, frame, moved, frame, moved):
        path = stage.plan.figures_folder / f"{tier}_{name}.svg"
        if metric == TIERS[tier].headline or path not in drawn:
            drawn[path] = chart
    for path in {*stage.plan.figures_folder.glob("*.svg")} - drawn.keys():
        path.unlink()
    for path, chart in drawn.items():
        charts.write_svg(path, chart)


def figures(
    stage: JudgedStage,
    frame: pd.DataFrame,
    moved: pd.DataFrame,
    data: charts.Data,
    moves_data: charts.Data,
) -> Iterator[tuple[charts.Kind, str, Drawn]]:
    """Yield tier and headline, what it is, and the chart, of everything that is drawn of a stage.

    Args:
        frame: Rows of headlines; `moved` has the questions gained and lost.
        data: The same rows, or the name under which a page has them; `moves_data` likewise.
    """
    chosen = "" if stage.chosen is None else stage.plan.label(stage.chosen)
    frame = frame[frame["role"] != "reference"]
    for kind in charts.kinds_of(frame):
        own = charts.of_kind(frame, kind)
        items = charts.items_of(own)
        known = [*dict.fromkeys(own[own["delta"].notna()]["checkpoint"])]
        if known:
            first = chosen if chosen in known else known[-1]
            yield kind, "heat", charts.heat(data, kind, items, known)
            yield kind, "forest", charts.forest(data, kind, items, known, first)
            counted = [item for item in items if len(moved) and item in set(moved["item"])]
            if kind[0] in WITH_ANSWERS and counted:
                yield kind, "moves", charts.moves(moves_data, kind[0], counted, known, first)
        yield kind, "curves", charts.curves(data, kind, items)
