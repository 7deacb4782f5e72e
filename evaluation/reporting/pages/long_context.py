"""Long context on a stage's page: loss by position, and accuracy by length of the prompts.

Both are of the chosen checkpoint, next to the bridge. Names of one task, or of one group, that
end in `__<length>` are one curve.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evaluation.bridge.breakdowns import position_values
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.reporting.tables.values import Value
from evaluation.results.delta_rows import DeltaRow, PositionDelta
from evaluation.settings.tiers import TIERS, TierName

_LENGTH = re.compile(r"(.+)__(\d+)(\D*)")
"""A name, the length in tokens that it ends in, and what marks a group."""

Paired = Mapping[int, PositionDelta | DeltaRow]
"""Deltas against the bridge, by the first position, or the length, of a point."""


class Point(NamedTuple):
    """A value with its interval, at some positions or at a length."""

    first: int
    last: int
    value: float
    low: float | None
    high: float | None


def position_series(stage: StageResults) -> list[dict[str, Any]]:
    """Return the chosen checkpoint's loss by position, with the bridge's, for slices with several bins."""
    chosen = stage.chosen
    if chosen is None:
        return []
    deltas: dict[tuple[str, str], dict[int, PositionDelta]] = {}
    for change in stage.deltas[chosen].by_position if chosen in stage.deltas else ():
        deltas.setdefault((change.tier, change.item), {})[change.first] = change
    return [
        _series(tier, item, [item], _lines(chosen, points, deltas.get((tier, item), {})))
        for tier, item, points in _bins(stage.steps[chosen])
    ]


def _bins(scored: Scored) -> Iterator[tuple[TierName, str, list[Point]]]:
    """Yield tier, slice and bins, for slices that have a loss by position."""
    for name, light in scored.results.tiers.items():
        if light.tier.kind != "nats":
            continue
        whole = scored.tier(name)
        for item, entry in whole.items.items():
            if bins := position_values(entry.units, whole.file.sequence_length):
                spans = ((b.first, b.last, b.estimate) for b in bins)
                yield name, item, [Point(f, t, e.value, e.low, e.high) for f, t, e in spans]


def length_series(stage: StageResults) -> list[dict[str, Any]]:
    """Return the chosen checkpoint's headline by length of the prompts, in tokens, groups first."""
    chosen = stage.chosen
    if chosen is None:
        return []
    by_length: dict[tuple[TierName, str], dict[int, Value]] = {}
    for value in stage.steps[chosen].values:
        named = _LENGTH.fullmatch(value.item)
        if named and value.metric == TIERS[value.tier].headline:
            by_length.setdefault((value.tier, named[1] + named[3]), {})[int(named[2])] = value
    rows = stage.deltas[chosen].deltas if chosen in stage.deltas else ()
    deltas = {(row.tier, row.item, row.metric): row for row in rows}
    series = []
    for (tier, name), values in by_length.items():
        keys = {n: (tier, value.item, f"delta_{value.metric}") for n, value in values.items()}
        paired = {length: deltas[key] for length, key in keys.items() if key in deltas}
        points = [
            Point(n, n, values[n].value, values[n].low, values[n].high) for n in sorted(values)
        ]
        if len(points) > 1:
            items = [one.item for one in values.values()]
            series.append(_series(tier, name, items, _lines(chosen, points, paired)))
    return sorted(series, key=lambda one: not one["item"].endswith(")"))


def _series(
    tier: TierName, name: str, items: list[str], lines: list[dict[str, Any]]
) -> dict[str, Any]:
    keys = [f"{tier}/{item}" for item in items]
    return {"tier": tier, "item": name, "of": keys, "metric": TIERS[tier].headline, "lines": lines}


def _lines(chosen: int, points: list[Point], paired: Paired) -> list[dict[str, Any]]:
    """Return a line of the checkpoint's values with their intervals, and one of the bridge's."""
    ours = [_point(point, paired.get(point.first)) for point in points]
    theirs = [
        {"first": point.first, "last": point.last, "value": paired[point.first].bridge_value}
        for point in points
        if point.first in paired
    ]
    lines = [{"name": f"step {chosen}", "number": 0, "points": ours}]
    return [*lines, {"name": "the bridge", "number": 1, "points": theirs}] if theirs else lines


def _point(one: Point, paired: PositionDelta | DeltaRow | None) -> dict[str, Any]:
    point = one._asdict()
    if paired is not None and paired.low is not None and paired.high is not None:
        bridge = paired.bridge_value
        point |= {"paired_low": bridge + paired.low, "paired_high": bridge + paired.high}
    return point
