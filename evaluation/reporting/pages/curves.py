"""Curves over steps: one series for each tier, item and metric."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.bridge.deltas import OVERALL
from evaluation.reporting.headlines import steps_in_words
from evaluation.settings.tiers import TIERS, TierName

LAST_STEPS = 5
"""Checkpoints at the end of a curve whose scatter about a line tells how noisy it is."""

Row = Mapping[str, Any]
Series = dict[str, Any]


def stage_series(rows: Sequence[Row]) -> list[Series]:
    """Series of a stage's summary rows, each with the bridge's value; overall ones first."""
    lines: dict[tuple[str, str, str], list[Row]] = {}
    references: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        key = (row["tier"], row["item"], row["metric"])
        if row["role"] == "bridge":
            references[key] = row
        else:
            lines.setdefault(key, []).append(row)
    return [_series(key, lines[key], references.get(key)) for key in sorted(lines, key=_rank)]


def _rank(key: tuple[str, str, str]) -> tuple[int, int, bool]:
    """By tier and metric as the table of tiers has them; what it does not name comes last."""
    tier, item, metric = key
    names = [known.name for known in TIERS[tier].metrics]
    rank = names.index(metric) if metric in names else len(names)
    return list(TIERS).index(tier), rank, item != OVERALL


def is_logarithmic(tier: TierName, metric: str) -> bool:
    """Whether an axis of it is logarithmic where values span much."""
    return TIERS[tier].metric(metric).unit == "perplexity"


def _series(key: tuple[str, str, str], rows: Sequence[Row], bridge: Row | None) -> Series:
    tier, item, metric = key
    rows = sorted(rows, key=lambda row: row["step"])
    return {
        "tier": tier,
        "item": item,
        "metric": metric,
        "chance": rows[0]["chance"],
        "points": [
            {
                "x": row["step"],
                **{name: row[name] for name in ("step", "value", "low", "high")},
                **_paired(row, bridge),
            }
            for row in rows
        ],
        "bridge": None
        if bridge is None
        else {name: bridge[name] for name in ("value", "low", "high")},
        "spread": _spread(rows),
        "note": _note(rows),
    }


def _paired(row: Row, bridge: Row | None) -> dict[str, float | None]:
    """Where the value may be beside the bridge's, by the interval of the paired delta."""
    low, high = row.get("delta_low"), row.get("delta_high")
    if bridge is None or low is None or high is None:
        return {"paired_low": None, "paired_high": None}
    return {"paired_low": bridge["value"] + low, "paired_high": bridge["value"] + high}


def _note(rows: Sequence[Row]) -> str | None:
    """Why some values have no interval, and at which steps."""
    lacking = [row for row in rows if row["low"] is None]
    if not lacking:
        return None
    why = next((row["note"] for row in lacking if row.get("note")), None) or "not known why"
    where = (
        "" if len(lacking) == len(rows) else f" at {steps_in_words([r['step'] for r in lacking])}"
    )
    return f"No 95 % interval{where}: {why.removeprefix('no interval: ')}."


def _spread(rows: Sequence[Row]) -> dict[str, Any] | None:
    """How far the last steps scatter about a straight line, beside the last interval's half-width.

    A trend is no noise, so it is taken off: SD = sqrt(sum of squared residuals / (steps - 2)).
    """
    last = rows[-LAST_STEPS:]
    if len(last) < 3:
        return None
    steps, values = [row["step"] for row in last], [row["value"] for row in last]
    line = statistics.linear_regression(steps, values)
    off = [v - line.intercept - line.slope * s for s, v in zip(steps, values, strict=True)]
    low, high = last[-1]["low"], last[-1]["high"]
    return {
        "steps": len(last),
        "sd": math.sqrt(math.fsum(one**2 for one in off) / (len(last) - 2)),
        "half": None if low is None else (high - low) / 2,
    }


def _is_one_mean(key: tuple[str, str, str], stages: Mapping[str, Sequence[Series]]) -> bool:
    """Whether an overall value is of the same slices or tasks in every stage that has it."""
    items = {
        frozenset(one["item"] for one in series if (one["tier"], one["metric"]) == key[::2])
        for series in stages.values()
    }
    return len(items - {frozenset()}) == 1


def joined_series(stages: Mapping[str, Sequence[Series]]) -> list[Series]:
    """Series that more than one stage has, end to end; a stage begins where the last one ended.

    A mean over slices or tasks is left out where stages have others: it would jump at their border.
    """
    offsets, end = {}, 0
    for name, series in stages.items():
        offsets[name] = end
        end += max((point["step"] for one in series for point in one["points"]), default=0)
    joined: dict[tuple[str, str, str], Series] = {}
    owners: dict[tuple[str, str, str], int] = {}
    for name, series in stages.items():
        for one in series:
            key = (one["tier"], one["item"], one["metric"])
            line = joined.setdefault(key, {**one, "points": [], "bridge": None, "spread": None})
            line["points"] += [
                {**point, "x": offsets[name] + point["step"], "stage": name}
                for point in one["points"]
            ]
            owners[key] = owners.get(key, 0) + 1
    for key in [key for key in joined if key[1] == OVERALL and not _is_one_mean(key, stages)]:
        del joined[key]
    borders = [offset for offset in offsets.values() if offset > 0]
    enough = min(2, len(stages))
    return [
        {**line, "borders": [border for border in borders if border >= line["points"][0]["x"]]}
        for key, line in joined.items()
        if owners[key] >= enough
    ]
