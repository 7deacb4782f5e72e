"""Differences of recipes: intervals that include how much checkpoints of one run vary.

An interval over questions is about these weights. Whether a recipe (a stage, a mix of data) is better is
another question, since another checkpoint of the same run has another level. From FEWEST checkpoints on,
their last ones show how large this noise is (`averages.scatter`: their variance, of which the flicker of
single answers is a part; a trend counts as variation). It is in both sides:

    one checkpoint against a bridge    V_items + s^2 + b^2, with b^2 from the bridge's own stage
                                       (`previous_stage`), or else assumed to be s^2
    two runs, means of k matched ones  V_items + s^2 / k, with s^2 of the differences, which have the
                                       noise of both sides

with Student's t of k - 1 degrees of freedom for the second part (`averages.with_checkpoints`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluation.bridge.averages import Noise, Scatter, both_sides, scatter, with_checkpoints
from evaluation.bridge.delta import Delta
from evaluation.bridge.estimate import ALPHA, Estimate
from evaluation.bridge.paired_binary import at_alpha
from evaluation.bridge.pairs import estimate_of
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.differences import mean_differences
from evaluation.results.objective_rows import NoiseRow
from evaluation.settings.requested_steps import FEWEST, last_ones


def noise_of(of_all: Sequence[Estimate], item: str) -> Scatter | None:
    """Return how much the last checkpoints vary; None for too few, or where it is unknown.

    Args:
        of_all: One difference for each checkpoint, in ascending steps.
        item: Name of the item, for estimates of a single one.
    """
    last = last_ones(of_all)
    return scatter(last, item) if len(last) >= FEWEST else None


def of_recipe(estimate: Estimate, ours: Scatter | None, bridge: Scatter | None) -> Estimate | None:
    """Return the difference of a checkpoint and its bridge with the noise of both; None where it is unknown.

    Args:
        ours: The noise of the stage's checkpoints.
        bridge: That of the bridge's own stage; None if it is assumed equal.
    """
    if ours is None or estimate.low is None:
        return None
    return with_checkpoints(estimate, both_sides(1, ours, bridge))


def of_two_runs(
    matched: Sequence[Estimate], item: str, alpha: float = ALPHA
) -> tuple[Estimate, int] | None:
    """Return the mean difference of the last matched checkpoints of two runs, its noise, and their number.

    Args:
        matched: Difference of the runs at each matched checkpoint, in ascending steps.
        item: Name of the item, for estimates of a single one.

    Returns:
        None for too few checkpoints, or where items are unknown or differ.
    """
    last, noise = last_ones(matched), noise_of(matched, item)
    if noise is None:
        return None
    parts = {}
    for name in last[0].parts or {item: last[0]}:
        differences = [(estimate.parts or {item: estimate})[name].differences for estimate in last]
        measured = [difference for difference in differences if difference is not None]
        if len(measured) < len(differences):
            return None
        parts[name] = estimate_of(mean_differences(measured))
    mean = macro_mean(parts, last[0].weights if last[0].parts else None)
    if mean.se is None:
        return None
    wide = with_checkpoints(at_alpha(mean, alpha), [Noise(1 / len(last), noise)], alpha)
    return replace(wide, p=None), len(last)


def item_noise(of_steps: Sequence[Sequence[Delta]]) -> Iterator[NoiseRow]:
    """Yield how much each item's headline varies between the last checkpoints, in ascending order."""
    columns: dict[tuple[str, str, str], list[Estimate]] = {}
    for deltas in of_steps:
        for delta in deltas:
            if delta.primary:
                columns.setdefault((delta.tier, delta.item, delta.metric), []).append(
                    delta.estimate
                )
    for (tier, item, metric), estimates in columns.items():
        if (noise := noise_of(estimates, item)) is not None:
            yield NoiseRow(
                tier=tier,
                item=item,
                metric=metric.removeprefix("delta_"),
                checkpoints=noise.checkpoints,
                level=math.sqrt(noise.level),
                flicker=math.sqrt(noise.flicker),
            )
