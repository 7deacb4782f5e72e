"""The deltas that stand for a step where there is room for one an item, and the words for numbers."""

from collections.abc import Sequence
from typing import Any

from evaluation.bridge.delta import OVERALL, headline_delta
from evaluation.results.deltas_file import DeltaRow, StageDeltas
from evaluation.results.stage_files import Recommendation
from evaluation.settings.tiers import TIERS, Metric
from evaluation.wording import first_few


def in_forest(row: DeltaRow) -> bool:
    """Return whether a forest plot has it: the headline of each item, and each rate over all units."""
    return _is_rate(row) or row.metric == headline_delta(row.tier)


def has_own_forest(row: DeltaRow) -> bool:
    """Return whether it has a plot of its own: the secondary metric that speaks for the headline."""
    return row.metric in [f"delta_{one.name}" for one in TIERS[row.tier].companions[:1]]


def name_in_forest(row: DeltaRow) -> str:
    return row.metric.removeprefix("delta_") if _is_rate(row) else row.item


def _is_rate(row: DeltaRow) -> bool:
    return TIERS[row.tier].rates and row.item == OVERALL


def tier_words() -> dict[str, Any]:
    """Return what a page's script needs to know of every tier, in the order of the table of tiers."""
    return {
        name: {
            "title": tier.title,
            "kind": tier.kind,
            "rates": tier.rates,
            "item": tier.item,
            "unit": tier.unit,
            "headline": tier.headline,
            "shown": tier.shown,
            "lower": not tier.head.higher_is_better,
            "metrics": {
                metric.name: {
                    "unit": metric.unit,
                    "lower": not metric.higher_is_better,
                    "words": metric.words,
                    "worth": metric.worth,
                }
                for metric in tier.metrics
            },
        }
        for name, tier in TIERS.items()
    }


def change_in_words(
    metric: Metric,
    value: float,
    low: float | None = None,
    high: float | None = None,
    sign: str = "+",
) -> str:
    """Return a change with its interval and unit: of fractions in points, as margins are."""
    scale, digits, unit = (100, 2, "points") if metric.unit == "fraction" else (1, 4, metric.unit)
    change, *bounds = (
        f"{scale * one:{sign}.{digits}f}" for one in (value, low, high) if one is not None
    )
    interval = f" [{', '.join(bounds)}]" if len(bounds) == 2 else ""
    return f"{change}{interval} {unit}"


def size_in_words(metric: Metric, size: float) -> str:
    """Return a margin or the size of a difference, e.g. `1 point` or `0.02 nats per token`."""
    if metric.unit != "fraction":
        return f"{size:.4g} {metric.unit}"
    points = f"{100 * size:.4g}"
    return f"{points} point{'' if points == '1' else 's'}"


def value_in_words(metric: Metric, value: float) -> str:
    """Return a value without its unit, but of fractions as a percentage."""
    return f"{100 * value:.1f} %" if metric.unit == "fraction" else f"{value:.4g}"


def provisional(found: Recommendation | StageDeltas | None) -> str:
    """Return what follows a verdict as long as requested steps are to come; else nothing."""
    if found is None or not found.provisional:
        return ""
    verb = "is" if len(found.awaited) == 1 else "are"
    return f" (provisional, until {steps_in_words(found.awaited)} {verb} in)"


def steps_in_words(steps: Sequence[int]) -> str:
    """Return the first few of many steps, e.g. `step 10, 20`."""
    return f"step {first_few([str(step) for step in steps])}"
