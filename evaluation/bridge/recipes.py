"""Differences of recipes: intervals that include how much checkpoints of one run vary.

An interval over questions is about these weights. Whether a recipe (a stage, a mix of data) is better is
another question, since another checkpoint of the same run has another level. From FEWEST checkpoints on,
their last ones show how large this noise is (`averages.scatter`: their variance, of which the flicker of
single answers is a part; a trend counts as variation). It is in both sides:

    one checkpoint against a bridge    V_items + 2 s^2, as the bridge's noise is assumed to be the same
    two runs, means of k matched ones  V_items + s^2 / k, with s^2 of the differences, which have the
                                       noise of both sides

with Student's t of k - 1 degrees of freedom for the second part (`averages.with_checkpoints`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluation.bridge.averages import scatter, with_checkpoints
from evaluation.bridge.delta import Delta
from evaluation.bridge.estimate import ALPHA, Estimate
from evaluation.bridge.paired_binary import at_alpha
from evaluation.bridge.pairs import estimate_of
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.differences import mean_differences
from evaluation.results.deltas_file import NoiseRow

FEWEST, MOST = 3, 5
"""Fewest and most last checkpoints from which the noise is estimated: the last half of them."""


def last_ones(estimates: Sequence[Estimate]) -> Sequence[Estimate]:
    """Return the estimates of the last checkpoints, from which the noise is estimated."""
    return estimates[-max(FEWEST, min(MOST, len(estimates) // 2)) :]


def of_recipe(estimate: Estimate, last: Sequence[Estimate], item: str) -> Estimate | None:
    """Return the difference of a checkpoint and its bridge with the noise of both; None where it is unknown.

    Args:
        last: The same difference for the last checkpoints of the stage.
        item: Name of the item, for estimates of a single one.
    """
    last = last_ones(last)
    known = scatter(last, item) if len(last) >= FEWEST else None
    if known is None or estimate.low is None:
        return None
    return with_checkpoints(estimate, known, 2, len(last))


def of_two_runs(
    matched: Sequence[Estimate], item: str, alpha: float = ALPHA
) -> tuple[Estimate, int] | None:
    """Return the mean difference of the last matched checkpoints of two runs, with their noise, and their number.

    Args:
        matched: Difference of the runs at each matched checkpoint, in ascending steps.
        item: Name of the item, for estimates of a single one.

    Returns:
        None for too few checkpoints, or where items are unknown or differ.
    """
    last = last_ones(matched)
    noise = scatter(last, item) if len(last) >= FEWEST else None
    if noise is None:
        return None
    parts = {}
    for name in last[0].parts or {item: last[0]}:
        differences = [(estimate.parts or {item: estimate})[name].differences for estimate in last]
        known = [difference for difference in differences if difference is not None]
        if len(known) < len(differences):
            return None
        parts[name] = estimate_of(mean_differences(known))
    mean = macro_mean(parts, last[0].weights if last[0].parts else None)
    if mean.se is None:
        return None
    wide = with_checkpoints(at_alpha(mean, alpha), noise, 1 / len(last), len(last), alpha)
    return replace(wide, p=None), len(last)


def item_noise(of_steps: Sequence[Sequence[Delta]]) -> Iterator[NoiseRow]:
    """Yield how much each item's headline varies between the last checkpoints of a stage, in ascending order."""
    columns: dict[tuple[str, str, str], list[Estimate]] = {}
    for deltas in of_steps:
        for delta in deltas:
            if delta.primary:
                columns.setdefault((delta.tier, delta.item, delta.metric), []).append(
                    delta.estimate
                )
    for (tier, item, metric), estimates in columns.items():
        last = last_ones(estimates)
        known = scatter(last, item) if len(last) >= FEWEST else None
        if known is not None:
            yield NoiseRow(
                tier=tier,
                item=item,
                metric=metric.removeprefix("delta_"),
                checkpoints=len(last),
                level=math.sqrt(known.level),
                flicker=math.sqrt(known.flicker),
            )
