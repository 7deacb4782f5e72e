"""Which deltas stand for a step where there is room for one an item, and what they are called."""

from collections.abc import Sequence
from typing import Any

from evaluation.bridge.delta import OVERALL, headline_delta
from evaluation.results.deltas_file import DeltaRow, StageDeltas
from evaluation.results.stage_files import Recommendation
from evaluation.settings.tiers import TIERS, Metric, TierName
from evaluation.wording import first_few


def in_forest(row: DeltaRow) -> bool:
    """Whether a forest plot has it: the headline of each item, and each rate over all units."""
    return _is_rate(row) or row.metric == headline_delta(row.tier)


def beside_forest(row: DeltaRow) -> bool:
    """Whether a page draws it in a plot of its own: the companion that speaks for the headline."""
    return row.metric in [f"delta_{one.name}" for one in TIERS[row.tier].companions[:1]]


def name_in_forest(row: DeltaRow) -> str:
    return row.metric.removeprefix("delta_") if _is_rate(row) else row.item


def _is_rate(row: DeltaRow) -> bool:
    return TIERS[row.tier].rates and row.item == OVERALL


def reads_lower(tier: TierName) -> bool:
    """Whether less of its headline is better, which a plot must say."""
    return not TIERS[tier].metric(TIERS[tier].headline).higher_is_better


def tier_words() -> dict[str, Any]:
    """What a page's script needs to know of every tier, in the order in which they are shown."""
    return {
        name: {
            "title": tier.title,
            "kind": tier.kind,
            "rates": tier.rates,
            "item": tier.item,
            "unit": tier.unit,
            "headline": tier.headline,
            "shown": tier.shown,
            "lower": reads_lower(name),
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
    """A change with its interval and unit: of fractions in points, as margins are."""
    scale, digits, unit = (100, 2, "points") if metric.unit == "fraction" else (1, 4, metric.unit)
    told, *bounds = (
        f"{scale * one:{sign}.{digits}f}" for one in (value, low, high) if one is not None
    )
    interval = f" [{', '.join(bounds)}]" if len(bounds) == 2 else ""
    return f"{told}{interval} {unit}"


def provisional(found: Recommendation | StageDeltas | None) -> str:
    """What stands behind a verdict as long as steps that are asked for are to come; else nothing."""
    if found is None or not found.provisional:
        return ""
    verb = "is" if len(found.awaited) == 1 else "are"
    return f" (provisional, until {steps_in_words(found.awaited)} {verb} in)"


def steps_in_words(steps: Sequence[int], most: int = 6) -> str:
    """The first few of many steps, e.g. `step 10, 20`."""
    return f"step {first_few(list(map(str, steps)), most)}"
