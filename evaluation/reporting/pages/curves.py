"""Curves over steps: one series for each tier, item and metric."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.bridge.delta import OVERALL
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
    return [_series(key, lines[key], references.get(key)) for key in sorted(lines, key=rank_of)]


def rank_of(key: tuple[str, str, str]) -> tuple[int, int, bool]:
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
        "spread": spread_of(rows),
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


def spread_of(rows: Sequence[Row]) -> dict[str, Any] | None:
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
