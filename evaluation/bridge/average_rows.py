"""Objectives judged by the mean over a stage's last checkpoints."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.bridge.averages import (
    both_sides,
    level_variance,
    mean_results,
    scatter,
    with_checkpoints,
)
from evaluation.bridge.companions import verdict_on
from evaluation.bridge.delta import Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.means import decisive_deltas, gain_interval
from evaluation.bridge.previous_stage import noise_before
from evaluation.results.read import read_results
from evaluation.results.stage_files import AverageRow
from evaluation.settings.objectives import Objective
from evaluation.settings.plan import StagePlan


def average_rows(
    plan: StagePlan,
    deltas: Mapping[int, Sequence[Delta]],
    before: Sequence[Sequence[Delta]],
) -> Iterator[dict[str, Any]]:
    """Yield each objective with `average`, judged by the mean over the last checkpoints, if there are enough.

    Args:
        before: Deltas of the last checkpoints of the bridge's own stage (`previous_stage`).
    """
    steps = sorted(deltas)
    for number, objective in enumerate(plan.stage.objective):
        if objective.average is None or len(steps) < objective.average:
            continue
        own = {step: deltas[step] for step in steps[-objective.average :]}
        bridge, *sides = (
            read_results(folder, [objective.tier])
            for folder in (plan.bridge_folder, *map(plan.step_folder, own))
        )
        key, mean = f"stages.{plan.name}.objective.{number}", compare(mean_results(sides), bridge)
        yield _average_objective(objective, key, mean, own, before).model_dump()


def _average_objective(
    objective: Objective,
    key: str,
    mean: Sequence[Delta],
    deltas: Mapping[int, Sequence[Delta]],
    before: Sequence[Sequence[Delta]],
) -> AverageRow:
    """Judge an objective by the mean over the last checkpoints."""
    headline = decisive_deltas(objective, mean, key)[1]
    single = [decisive_deltas(objective, step_deltas, key)[1] for step_deltas in deltas.values()]
    ours = scatter([one.estimate for one in single], single[0].item)
    bridge = noise_before(objective, headline, before)
    noises = [] if ours is None else both_sides(1 / len(single), ours, bridge)
    widened = with_checkpoints(headline.estimate, noises)
    verdict = verdict_on(objective, *gain_interval(headline.sign, widened))
    group = f" {objective.group}" if objective.group else ""
    return AverageRow(
        tier=objective.tier,
        group=objective.group,
        metric=headline.metric,
        steps=tuple(deltas),
        delta=widened.value,
        low=widened.low,
        high=widened.high,
        se_items=headline.estimate.se,
        se_checkpoints=math.sqrt(level_variance(noises)) if noises else None,
        bridge_checkpoints=None if bridge is None or not noises else bridge.checkpoints,
        verdict=verdict,
        sentence=f"{objective.tier}{group} by the mean of the last {len(single)} checkpoints: "
        f"{headline.definition.words} {_change(headline, widened)}: {verdict} "
        f"(the last one alone {_change(headline, single[-1].estimate)})",
    )


def _change(delta: Delta, estimate: Estimate) -> str:
    change = delta.definition.change(estimate.value, estimate.low, estimate.high)
    return f"{change}, no interval" if estimate.low is None else change
