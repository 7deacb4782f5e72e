"""The table of a stage's page that says how much each slice and task can tell."""

from evaluation.reporting.pages.provenance import Table
from evaluation.results.stage_files import QualityRow, TaskQuality
from evaluation.settings.tiers import TIERS

COLUMNS = (
    *("item", "metric", "above chance (z)", "monotone", "noise", "signal / noise"),
    *("agrees with bits per byte", "items", "to decide", "it takes"),
)


def quality_tables(quality: TaskQuality) -> list[Table]:
    """None where nothing has been scored."""
    if not quality.rows:
        return []
    sides = {row.compared_with for row in quality.rows if row.compared_with is not None}
    note = (
        "Over the stage's checkpoints: rank correlation with the steps (1: steady gain), scatter "
        "between neighbours with the trend taken off, gain over that scatter, and the share of pairs "
        "of checkpoints that gold bits per byte put in the same order."
    )
    if sides:
        note += (
            f" Last: how many items show such a difference with probability {quality.power:g}, by the "
            f"paired differences of the last checkpoint with the {' or '.join(sorted(sides))}; "
            "▼ where there are fewer."
        )
    return [
        Table("What each slice and task can tell", COLUMNS, list(map(_cells, quality.rows)), note)
    ]


def _cells(row: QualityRow) -> tuple[str, ...]:
    needed = "–" if row.needed is None else f"{row.needed:,}{' ▼' if row.too_small else ''}"
    return (
        row.item,
        row.metric,
        _number(row.above_chance, 1),
        _number(row.monotonicity, 2),
        "–" if row.noise is None else f"{row.noise:.3g}",
        _number(row.signal_to_noise, 1),
        "–" if row.agreement is None else f"{100 * row.agreement:.0f} %",
        f"{row.n:,} {TIERS[row.tier].unit}",
        f"{row.difference:g} {TIERS[row.tier].metric(row.metric).unit}",
        needed,
    )


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
