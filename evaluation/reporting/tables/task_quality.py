"""How much each slice and task of a stage can detect, and what would decide undecided objectives.

The formulas are in `bridge.power`. Series are over the stage's checkpoints. The needed number of questions
follows from paired differences of the last checkpoint with the bridge, or else with the one before.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from evaluation.bridge.estimate import ALPHA, POWER
from evaluation.bridge.paired import estimate_of, paired_of
from evaluation.bridge.power import monotonicity, needed_units
from evaluation.errors import ResultsError
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.columns import write_csv
from evaluation.results.files import write_model
from evaluation.results.read import Item, TierResults
from evaluation.results.stage_files import (
    QUALITY,
    QUALITY_TABLE,
    TaskQuality,
)
from evaluation.results.tier_files import Counts
from evaluation.settings import protocol
from evaluation.settings.metric import Metric
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier

QUALITY_COLUMNS = (
    "stage tier item group metric checkpoints value monotonicity n compared_with difference needed "
    "too_small in_split"
).split()

Points = Mapping[int, float]
"""Values by step."""


class Sides(NamedTuple):
    """The last checkpoint that has a tier, and the checkpoint that it is paired with."""

    ours: TierResults
    theirs: TierResults | None
    called: str | None


def write_quality(stage: StageResults) -> TaskQuality:
    """Write both files of the quality of slices and tasks; tiers of rates, with few prompts, are left out."""
    tiers = [TIERS[name] for name in stage.plan.tiers if not TIERS[name].rates]
    rows = [row for tier in tiers for row in _tier_rows(stage, tier)]
    content = {
        "stage": stage.plan.name,
        "protocol": protocol.REPORT,
        "alpha": round(ALPHA, 10),
        "power": POWER,
        "rows": rows,
    }
    folder = stage.plan.results
    write_csv(folder / QUALITY_TABLE, QUALITY_COLUMNS, rows)
    return write_model(folder / QUALITY, TaskQuality, content)


def _tier_rows(stage: StageResults, tier: Tier) -> Iterator[dict[str, Any]]:
    sides, points = _sides(stage, tier), _points(stage, tier)
    if sides is None:
        return
    for name, item in sides.ours.items.items():
        metrics = [tier.metric(metric) for metric in tier.metrics_of(item.values)]
        for metric in metrics:
            if series := points.get((name, metric.name)):
                yield _row(stage.plan, sides, metric, name, item, series)


def _sides(stage: StageResults, tier: Tier) -> Sides | None:
    """Read both sides again, with their items; None where no step has the tier."""
    steps = sorted(step for step, one in stage.steps.items() if tier.name in one.tiers)
    ours = _read(stage, stage.steps[steps[-1]], tier) if steps else None
    if ours is None:
        return None
    if stage.bridge is not None and tier.name in stage.bridge.tiers:
        return Sides(ours, _read(stage, stage.bridge, tier), "bridge")
    if len(steps) > 1:
        return Sides(ours, _read(stage, stage.steps[steps[-2]], tier), f"step {steps[-2]}")
    return Sides(ours, None, None)


def _read(stage: StageResults, side: Scored, tier: Tier) -> TierResults | None:
    try:
        return stage.tier(side, tier.name)
    except ResultsError:  # damaged since it was read, which the next run reports
        return None


def _points(stage: StageResults, tier: Tier) -> Mapping[tuple[str, str], Points]:
    """Return the values of each item and metric."""
    points: dict[tuple[str, str], dict[int, float]] = {}
    for step, scored in sorted(stage.steps.items()):
        for value in scored.values:
            if value.tier == tier.name:
                points.setdefault((value.item, value.metric), {})[step] = value.value
    return points


def _row(
    plan: StagePlan,
    sides: Sides,
    metric: Metric,
    name: str,
    item: Item,
    points: Points,
) -> dict[str, Any]:
    sign = 1 if metric.higher_is_better else -1
    other = sides.theirs.items.get(name) if sides.theirs is not None else None
    pair = None if other is None else _paired_items(item, other, metric)
    difference = _difference_to_decide(plan, sides.ours.tier, item.group, metric)
    needed = None if pair is None else needed_units(pair.variance, difference, pair.turning)
    n = pair.n if pair else _size(item)
    return {
        "stage": plan.name,
        "tier": sides.ours.tier.name,
        "item": name,
        "group": item.group,
        "metric": metric.name,
        "checkpoints": len(points),
        "value": points[max(points)],
        "monotonicity": monotonicity([sign * value for value in points.values()]),
        "n": n,
        "compared_with": sides.called if pair else None,
        "difference": difference,
        "needed": needed,
        "too_small": None if needed is None else n < needed,
        "in_split": _in_split(sides.ours.tier, item),
    }


def _difference_to_decide(plan: StagePlan, tier: Tier, group: str | None, metric: Metric) -> float:
    """Return the smallest margin above zero of an objective on the item, or else the metric's `worth`."""
    margins = [
        objective.margin
        for objective in plan.stage.objective
        if objective.tier == tier.name and objective.group in (None, group) and objective.margin > 0
        if objective.decided_on.name == metric.name
    ]
    return min(margins, default=metric.worth)


def _size(item: Item) -> int:
    counts = item.entry.items
    return counts.used if isinstance(counts, Counts) else 0


def _in_split(tier: Tier, item: Item) -> int | None:
    """Return how many items the data have, including those that prefill left out; None if unknown."""
    counts = item.entry.items
    if not isinstance(counts, Counts):
        return None
    if tier.kind == "nats":
        return counts.used if counts.left_out else None
    return counts.asked


class PairedItems(NamedTuple):
    """`variance` of one unit's paired difference, and the share of units that change, for credits.

    It is n times the variance of the mean, so clusters, strata and neighbouring blocks count.
    """

    n: int
    variance: float
    turning: float | None = None


def _paired_items(mine: Item, other: Item, metric: Metric) -> PairedItems | None:
    """Return the variation of paired units; None where units are unknown, or differ between the sides."""
    if other.units is None:
        return None
    paired = paired_of(mine, other, metric, other.units.layout.groups)
    estimate = None if paired is None else estimate_of(paired)
    if paired is None or estimate is None or estimate.se is None:
        return None
    n, turning = estimate.n, None
    if paired.passes:
        turning = float(np.count_nonzero(paired.judged.amounts)) / n
    return PairedItems(n, n * estimate.se**2, turning)
