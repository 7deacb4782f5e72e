"""Loss by position on a stage's page: the chosen checkpoint's, and the bridge's beside it."""

from collections.abc import Iterator
from typing import Any

from evaluation.bridge.positions import BinValue, position_values
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.deltas_file import PositionDelta
from evaluation.results.kinds import NatsItem
from evaluation.settings.candidates import Candidate, candidate_label
from evaluation.settings.tiers import TIERS


def position_series(found: StageResults, chosen: Candidate | None) -> list[dict[str, Any]]:
    """Return a series for each slice with at least two bins; with the bridge's line if it is compared."""
    if chosen is None or chosen not in found.candidates:
        return []
    deltas = found.deltas[chosen].by_position if chosen in found.deltas else ()
    return [
        {
            "tier": tier,
            "item": item,
            "metric": TIERS[tier].headline,
            "lines": _lines(chosen, bins, [d for d in deltas if (d.tier, d.item) == (tier, item)]),
        }
        for tier, item, bins in _items(found.candidates[chosen])
    ]


def _items(scored: Scored) -> Iterator[tuple[str, str, list[BinValue]]]:
    """Yield tier, slice and bins of what has a loss by position."""
    for name, light in scored.results.tiers.items():
        if light.tier.kind != "nats":
            continue
        whole = scored.tier(name)
        for item, one in whole.items.items():
            blocks = one.blocks if isinstance(one, NatsItem) else None
            if bins := position_values(blocks, whole.file.sequence_length):
                yield name, item, bins


def _lines(
    chosen: Candidate, bins: list[BinValue], deltas: list[PositionDelta]
) -> list[dict[str, Any]]:
    """Return a line of the checkpoint's loss with its intervals, and one of the bridge's."""
    paired = {delta.first: delta for delta in deltas}
    ours = [_point(one, paired.get(one.first)) for one in bins]
    theirs = [{"first": d.first, "last": d.last, "value": d.bridge_value} for d in deltas]
    lines = [{"name": candidate_label(chosen), "number": 0, "points": ours}]
    return [*lines, {"name": "the bridge", "number": 1, "points": theirs}] if theirs else lines


def _point(one: BinValue, paired: PositionDelta | None) -> dict[str, Any]:
    known = one.estimate
    point: dict[str, Any] = {"first": one.first, "last": one.last, "value": known.value}
    point |= {"low": known.low, "high": known.high}
    if paired is not None and paired.low is not None and paired.high is not None:
        bridge = paired.bridge_value
        point |= {"paired_low": bridge + paired.low, "paired_high": bridge + paired.high}
    return point
