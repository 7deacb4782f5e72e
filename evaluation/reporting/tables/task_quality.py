"""How much each slice and task of a stage can detect, and what would decide undecided objectives.

The formulas are in `bridge.power`. Series are over the stage's checkpoints. The needed number of questions
follows from paired differences of the last checkpoint with the bridge, or else with the one before.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from evaluation.bridge.deltas import compare
from evaluation.bridge.estimate import ALPHA, POWER, Estimate
from evaluation.bridge.power import monotonicity, needed_units
from evaluation.errors import BridgeError
from evaluation.results.columns import write_csv
from evaluation.results.files import write_model
from evaluation.results.read import Item, read_results
from evaluation.results.stage_files import QUALITY, QUALITY_TABLE, TaskQuality
from evaluation.results.table import TableRows
from evaluation.results.tier_files import Counts
from evaluation.settings import protocol
from evaluation.settings.metric import Metric
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier

QUALITY_COLUMNS = (
    "stage tier item group metric checkpoints value monotonicity n compared_with difference needed "
    "too_small in_split"
).split()


def write_quality(plan: StagePlan, table: TableRows) -> TaskQuality:
    """Write both files of the quality of slices and tasks; tiers of rates, with few prompts, are left out."""
    tiers = [TIERS[name] for name in plan.tiers if not TIERS[name].rates]
    rows = [row for tier in tiers for row in _rows(plan, tier, table)]
    content = {
        "stage": plan.name,
        "protocol": protocol.REPORT,
        "alpha": round(ALPHA, 10),
        "power": POWER,
        "rows": rows,
    }
    folder = plan.results
    write_csv(folder / QUALITY_TABLE, QUALITY_COLUMNS, rows)
    return write_model(folder / QUALITY, TaskQuality, content)


def _rows(plan: StagePlan, tier: Tier, table: TableRows) -> Iterator[dict[str, Any]]:
    own = [row for row in table if row["tier"] == tier.name and row["position"] is None]
    scored = sorted((row for row in own if row["role"] == "step"), key=lambda row: row["step"])
    points: dict[tuple[str, str], list[float]] = {}
    for row in scored:
        points.setdefault((row["item"], row["metric"]), []).append(row["value"])
    if not scored:
        return
    steps = [*dict.fromkeys(row["step"] for row in scored)]
    ours, other, called = read_results(plan.step_folder(steps[-1]), [tier.name]), None, None
    if any(row["role"] == "bridge" for row in own):
        other, called = plan.bridge_folder, "bridge"
    elif len(steps) > 1:
        other, called = plan.step_folder(steps[-2]), f"step {steps[-2]}"
    estimates: dict[tuple[str, str], Estimate] = {}
    if other is not None:
        with contextlib.suppress(
            BridgeError
        ):  # of sides that must not be compared nothing is needed
            deltas = compare(ours, read_results(other, [tier.name]))
            estimates = {
                (d.item, d.metric): d.estimate for d in deltas if d.estimate.se is not None
            }
    for name, item in ours.tiers[tier.name].items.items():
        for metric in map(tier.metric, tier.metrics_by(item.entry.kind)):
            if series := points.get((name, metric.name)):
                estimate = estimates.get((name, f"delta_{metric.name}"))
                row = _row(plan, tier, metric, item, series, estimate)
                row |= {"item": name, "compared_with": called if estimate else None}
                yield {column: row[column] for column in QUALITY_COLUMNS}


def _row(
    plan: StagePlan,
    tier: Tier,
    metric: Metric,
    item: Item,
    series: list[float],
    estimate: Estimate | None,
) -> dict[str, Any]:
    sign = 1 if metric.higher_is_better else -1
    difference = _difference_to_decide(plan, tier, item.group, metric)
    counts, n, needed = item.entry.items, 0, None
    if estimate is not None:
        n, needed = estimate.n, _needed(estimate, difference)
    elif isinstance(counts, Counts):
        n = counts.used
    return {
        "stage": plan.name,
        "tier": tier.name,
        "group": item.group,
        "metric": metric.name,
        "checkpoints": len(series),
        "value": series[-1],
        "monotonicity": monotonicity([sign * value for value in series]),
        "n": n,
        "difference": difference,
        "needed": needed,
        "too_small": None if needed is None else n < needed,
        "in_split": _in_split(tier, counts),
    }


def _needed(estimate: Estimate, difference: float) -> int | None:
    """Return how many units detect a difference.

    The variance of one unit's difference is n times that of the mean, so clusters, strata and neighbouring
    blocks count.
    """
    paired, turning = estimate.paired, None
    if paired is not None and paired.passes:
        turning = float(np.count_nonzero(paired.judged.amounts)) / estimate.n
    return needed_units(estimate.n * (estimate.se or 0) ** 2, difference, turning)


def _difference_to_decide(plan: StagePlan, tier: Tier, group: str | None, metric: Metric) -> float:
    """Return the smallest margin above zero of an objective on the item, or else the metric's `worth`."""
    margins = [
        objective.margin
        for objective in plan.stage.objective
        if objective.tier == tier.name and objective.group in (None, group) and objective.margin > 0
        if objective.decided_on.name == metric.name
    ]
    return min(margins, default=metric.worth)


def _in_split(tier: Tier, counts: object) -> int | None:
    """Return how many items the data have, including those that prefill left out; None if unknown."""
    if not isinstance(counts, Counts):
        return None
    if tier.kind == "nats":
        return counts.used if counts.left_out else None
    return counts.asked
