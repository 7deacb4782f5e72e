"""What is drawn of a stage, on its page and as `figures/<tier>_<kind>.svg`."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from evaluation.reporting import charts
from evaluation.reporting.charts import Drawn
from evaluation.reporting.judged_stage import JudgedStage
from evaluation.settings.tiers import TIERS


def write_figures(stage: JudgedStage) -> None:
    """Write each tier's charts as SVG, of its headline if it has that, and remove those of earlier data."""
    frame, drawn = charts.headlines(stage.frame), dict[Path, Drawn]()
    for (tier, metric), name, chart in figures(stage, frame, frame):
        path = stage.plan.figures_folder / f"{tier}_{name}.svg"
        if metric == TIERS[tier].headline or path not in drawn:
            drawn[path] = chart
    for path in {*stage.plan.figures_folder.glob("*.svg")} - drawn.keys():
        path.unlink()
    for path, chart in drawn.items():
        charts.write_svg(path, chart)


def figures(
    stage: JudgedStage, frame: pd.DataFrame, data: charts.Data
) -> Iterator[tuple[charts.Kind, str, Drawn]]:
    """Yield tier and headline, what it is, and the chart, of everything that is drawn of a stage.

    Args:
        frame: Rows of headlines.
        data: The same rows, or the name under which a page has them.
    """
    chosen = "" if stage.chosen is None else stage.plan.label(stage.chosen)
    frame = frame[frame["role"] != "reference"]
    for kind in charts.kinds_of(frame):
        own = charts.of_kind(frame, kind)
        items = charts.items_of(own)
        known = [*dict.fromkeys(own[own["delta"].notna()]["checkpoint"])]
        if known:
            first = chosen if chosen in known else known[-1]
            if (own["mde"] > 0).any():
                yield kind, "heat", charts.heat(data, kind, items, known)
            yield kind, "forest", charts.forest(data, kind, items, known, first)
            if counted := charts.items_of(own[(own["gained"] > 0) | (own["lost"] > 0)]):
                yield kind, "moves", charts.moves(data, kind, counted, known, first)
        yield kind, "curves", charts.curves(data, kind, items)
