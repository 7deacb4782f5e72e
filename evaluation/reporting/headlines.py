"""The metric and the deltas that represent an item, and steps and verdicts in words."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from evaluation.bridge.delta import OVERALL, headline_delta
from evaluation.errors import first_few
from evaluation.results.delta_rows import DeltaColumns
from evaluation.results.deltas_file import StageDeltas
from evaluation.results.stage_files import Recommendation
from evaluation.settings.tiers import TIERS, TierName


def shown_metrics(keys: Iterable[tuple[TierName, str, str]]) -> dict[tuple[TierName, str], str]:
    """Return by tier and item the metric that represents it where only one is shown, without `delta_`."""
    metrics: dict[tuple[TierName, str], set[str]] = {}
    for tier, item, metric in keys:
        metrics.setdefault((tier, item), set()).add(metric.removeprefix("delta_"))
    return {key: TIERS[key[0]].shown_of(metric) for key, metric in metrics.items()}


def in_forest(row: DeltaColumns) -> bool:
    """Return whether the first forest plot shows a delta: a headline, or a rate over all units."""
    return _is_rate(row) or row.metric == headline_delta(row.tier)


def has_own_forest(row: DeltaColumns) -> bool:
    """Return whether the second forest plot shows a delta: the companion of the tier's headline."""
    return row.metric == f"delta_{TIERS[row.tier].companion}"


def name_in_forest(row: DeltaColumns) -> str:
    """Return the name beside a delta in a forest plot: the metric of a rate over all units, else the item."""
    return row.metric.removeprefix("delta_") if _is_rate(row) else row.item


def _is_rate(row: DeltaColumns) -> bool:
    return TIERS[row.tier].rates and row.item == OVERALL


def loss_units() -> dict[str, str]:
    """Return the metrics that are one loss in different units, each with its unit; headlines first."""
    tiers = (tier for tier in TIERS.values() if tier.kind == "nats")
    metrics = (metric for tier in tiers for metric in tier.headline_first)
    return {metric.name: metric.unit for metric in metrics if not metric.is_secondary}


def tier_words() -> dict[str, Any]:
    """Return titles, units and metrics of every tier, as a page's script needs them."""
    return {
        name: {
            "title": tier.title,
            "kind": tier.kind,
            "rates": tier.rates,
            "item": tier.item,
            "unit": tier.unit,
            "headline": tier.headline,
            "shown": tier.shown,
            "unranked": next(iter(tier.unranked), None),
            "lower": not tier.head.higher_is_better,
            "metrics": {
                metric.name: {
                    "unit": metric.unit,
                    "lower": not metric.higher_is_better,
                    "words": metric.words,
                    "worth": metric.worth,
                    "secondary": metric.is_secondary,
                }
                for metric in tier.metrics
            },
        }
        for name, tier in TIERS.items()
    }


def provisional(recommendation: Recommendation | StageDeltas | None) -> str:
    """Return the note that follows a verdict as long as results are missing; empty for a final verdict."""
    if recommendation is None or not recommendation.provisional:
        return ""
    verb = "is" if len(recommendation.awaited) == 1 else "are"
    return f" (provisional, until {steps_in_words(recommendation.awaited)} {verb} in)"


def recommendation_line(recommendation: Recommendation, label: Callable[[int], str]) -> str:
    """Return in a line which step is recommended, if any, and why, as all texts show it.

    Args:
        label: Returns what texts call a step, as `StagePlan.label` does.
    """
    so_far = provisional(recommendation)
    if recommendation.step is None:
        return f"recommendation: none{so_far}; {recommendation.why}"
    return f"{recommendation.kind}{so_far}: {label(recommendation.step)} — {recommendation.why}"


def steps_in_words(steps: Sequence[int], join: Callable[[list[str]], str] = first_few) -> str:
    """Return steps in words, such as `step 10, 20`; nothing for none.

    Args:
        join: Makes one text of their numbers; by default it names only the first few.
    """
    return f"step {join([str(step) for step in steps])}" if steps else ""
