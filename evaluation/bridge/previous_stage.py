"""Noise of the bridge, read from the last checkpoints of its own stage, up to the bridge itself.

They were scored for their stage, so this asks for no scores: where that stage has measured the same items
in the same way, each of its checkpoints is compared with the bridge, and the deltas' variance is the noise
(`averages.scatter`, as for this stage's own checkpoints). Elsewhere the bridge's noise is assumed.
"""

import logging
from collections.abc import Iterator, Sequence

from evaluation.bridge.averages import Scatter, scatter
from evaluation.bridge.comparable import comparable_part
from evaluation.bridge.delta import Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.means import find_deltas
from evaluation.bridge.simultaneous_intervals import leaves
from evaluation.checkpoints.subjects import previous_folders
from evaluation.errors import BridgeError, ResultsError
from evaluation.results.read import Results, read_results, tiers_in
from evaluation.settings.objectives import Objective
from evaluation.settings.plan import StagePlan
from evaluation.settings.requested_steps import FEWEST

log = logging.getLogger(__name__)


def previous_deltas(plan: StagePlan, bridge: Results) -> Iterator[list[Delta]]:
    """Yield the deltas of each last checkpoint of the bridge's stage against it, of items that both have."""
    for folder in previous_folders(plan):
        tiers = [name for name in tiers_in(folder) if name in bridge.tiers]
        try:
            common = comparable_part(read_results(folder, tiers), bridge) if tiers else None
            if common is not None and common[0].tiers:
                yield compare(*common)
        except (ResultsError, BridgeError) as error:
            log.warning("the bridge's noise is read without %s: %s", folder, error)


def noise_before(
    objective: Objective, delta: Delta, before: Sequence[Sequence[Delta]]
) -> Scatter | None:
    """Return the noise of the bridge's stage by an objective; None where it is to be assumed.

    Args:
        delta: What the objective is decided on, in this stage.
        before: The checkpoints' deltas, as of `previous_deltas`.
    """
    weights = _weights(delta)
    same = [row for deltas in before if (row := find_deltas(objective, deltas)[1]) is not None]
    if not FEWEST <= len(same) == len(before) or any(_weights(row) != weights for row in same):
        return None
    return scatter([row.estimate for row in same], delta.item)


def _weights(delta: Delta) -> dict[str, float]:
    return {name: weight for name, (weight, _) in leaves(delta.estimate, delta.item).items()}
