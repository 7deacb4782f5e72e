"""Mean over a stage's last k checkpoints, reported next to the last checkpoint alone.

A single checkpoint is a random draw: a few steps later, its answers differ. The mean over the last k
is paired with the bridge item by item (each item's mean over the k), and its interval covers the
variation of items and of checkpoints. Items and checkpoints are crossed, so with

    V_items    variance of the mean over the items' means, as for any paired difference
    V_steps    s^2 / k, with s^2 the variance of the k checkpoints' deltas
    V_both     sum_i s_i^2 / k, the variation of single items between checkpoints, which is in both

the variance is V_items + max(0, V_steps - V_both): the two-way random effects model (Searle, Casella
and McCulloch, Variance Components, 1992). V_steps has only k - 1 degrees of freedom, so the interval is
built from (V_items - V_both) + V_steps, each part with its own quantile: to each side it reaches
sqrt(a^2 + b^2), with a the reach of the items' interval, scaled to the first part, and b = t_(k-1) times
the root of the second (Graybill and Wang, JASA 75, 1980), and never less than the items' interval. (A
difference of two estimated variances under t_(k-1) would be 0 too often with few checkpoints.) The bridge
is one checkpoint, whose noise is read from the last ones of its own stage (`previous_stage`), as a third
part, or else assumed to be the same. A trend over the k counts as variation, so intervals are too wide
rather than too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evaluation.bridge.estimate import ALPHA, Estimate, limited, quantile
from evaluation.bridge.simultaneous_intervals import leaves
from evaluation.errors import ResultsError
from evaluation.results.kinds import Item, Units
from evaluation.results.read import Results, TierResults


class Scatter(NamedTuple):
    """Variances of one checkpoint: `between` checkpoints, and from the `flicker` of single answers alone.

    `checkpoints` is the number of checkpoints that they are estimated from.
    """

    between: float
    flicker: float
    checkpoints: int

    @property
    def level(self) -> float:
        """The variance of a checkpoint's level, without flicker."""
        return max(0.0, self.between - self.flicker)


class Noise(NamedTuple):
    """A part of a difference's noise; the variance of one checkpoint enters `times`: 1/k for a mean of k."""

    times: float
    scatter: Scatter

    def reach(self, alpha: float) -> float:
        """Return how far an interval of this error rate reaches because of it."""
        t = quantile(1 - alpha / 2, self.scatter.checkpoints - 1)
        return t * math.sqrt(self.times * self.scatter.between)


def both_sides(share: float, ours: Scatter, bridge: Scatter | None) -> list[Noise]:
    """Return the noise of a stage's checkpoints and of the bridge, which is assumed equal if unknown.

    Args:
        share: How often the variance of one of our checkpoints enters.
    """
    if bridge is None:
        return [Noise(share + 1, ours)]
    return [Noise(share, ours), Noise(1, bridge)]


def level_variance(noises: Sequence[Noise]) -> float:
    """Return the variance that checkpoints' levels add to a difference."""
    return math.fsum(noise.times * noise.scatter.level for noise in noises)


def scatter(estimates: Sequence[Estimate], name: str) -> Scatter | None:
    """Return how much checkpoints vary; None where a variance is unknown or the numbers of items differ.

    Args:
        estimates: One difference for each checkpoint, over the same items.
        name: Name of the slice or task, for estimates of a single one.
    """
    leaf_tables = [leaves(estimate, name) for estimate in estimates]
    flicker = 0.0
    for leaf in leaf_tables[0]:
        rows = []
        for leaf_table in leaf_tables:
            weight, variance = leaf_table.get(leaf, (0.0, None))
            if variance is None:
                return None
            rows.append(weight * variance.independent)
        if len({len(row) for row in rows}) > 1:
            return None
        flicker += float(np.stack(rows).var(axis=0, ddof=1).sum())
    between = float(np.var([estimate.value for estimate in estimates], ddof=1))
    return Scatter(between, flicker, len(estimates))


def with_checkpoints(estimate: Estimate, noises: Sequence[Noise], alpha: float = ALPHA) -> Estimate:
    """Return an estimate whose interval, if it has one, includes the variation between checkpoints.

    Args:
        noises: The noise of the stage's checkpoints, and of others if it is another; none if unknown.
        alpha: Error rate of the interval, as of the estimate's own.
    """
    if not estimate.se or estimate.low is None or estimate.high is None or not noises:
        return estimate
    flicker = math.fsum(noise.times * noise.scatter.flicker for noise in noises)
    items = max(0.0, 1 - flicker / estimate.se**2)
    reach = math.hypot(*(noise.reach(alpha) for noise in noises))
    below, above = (
        max(distance, math.hypot(math.sqrt(items) * distance, reach))
        for distance in (estimate.value - estimate.low, estimate.high - estimate.value)
    )
    wide = replace(
        estimate,
        se=math.sqrt(estimate.se**2 + level_variance(noises)),
        low=estimate.value - below,
        high=estimate.value + above,
        p=None,
        mde=None,
        counts=None,
        method=f"{estimate.method}, over {noises[0].scatter.checkpoints} checkpoints",
    )
    return limited(wide, estimate.limit)


def mean_results(sides: Sequence[Results]) -> Results:
    """Return the mean over several checkpoints, as the results of one, with folder and header of the first.

    Raises:
        ResultsError: The checkpoints differ in their items, blocks, questions or prompts.
    """
    first = sides[0]
    tiers = {name: _mean_tier([side.tiers[name] for side in sides]) for name in first.tiers}
    return replace(first, tiers=tiers)


def _mean_tier(sides: Sequence[TierResults]) -> TierResults:
    first = sides[0]
    if any(side.items.keys() != first.items.keys() for side in sides):
        raise ResultsError(
            f"{sides[-1].folder}: its {first.tier.item} names are not those of {first.folder}, so "
            "there is no mean over both; score the checkpoint again"
        )
    items = {name: _mean_item(sides, [side.items[name] for side in sides]) for name in first.items}
    overall = [side.overall for side in sides if side.overall is not None]
    mean = _mean_item(sides, overall) if len(overall) == len(sides) else None
    return replace(first, items=items, overall=mean)


def _mean_item(sides: Sequence[TierResults], items: Sequence[Item]) -> Item:
    """Return a slice or task with its means over all checkpoints, and those of its units."""
    first, names = items[0], items[0].values
    tier = sides[0].tier
    values = {
        name: tier.metric(name).mean([item.values[name] for item in items])
        for name in names
        if all(name in item.values for item in items)
    }
    units = _mean_units(sides, [item.units for item in items])
    return replace(first, values=values, units=units)


def _mean_units(sides: Sequence[TierResults], units: Sequence[Units | None]) -> Units | None:
    """Return units with the mean of each metric that all have, if all judged them; raise ResultsError."""
    judged = [side_units for side_units in units if side_units is not None]
    if len(judged) < len(units):
        return None
    first = judged[0]
    for side, side_units in zip(sides, judged, strict=True):
        if [*side_units.ids] != [*first.ids]:
            raise ResultsError(
                f"{side.folder}: its {side.tier.unit} are not those of {sides[0].folder}, so there is "
                "no mean over both; score the checkpoint again"
            )
    measured = {
        name: ratio._replace(
            amounts=np.mean([side_units.measured[name].amounts for side_units in judged], axis=0)
        )
        for name, ratio in first.measured.items()
        if all(name in side_units.measured for side_units in judged)
    }
    return replace(first, measured=measured)
