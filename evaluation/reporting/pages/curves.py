"""Curves over steps: a series for each tier, item and metric."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.bridge.power import neighbour_noise
from evaluation.reporting.headlines import steps_in_words
from evaluation.settings.tiers import TIERS, TierName

WIDE = 8
"""A perplexity whose largest value is so many times its smallest has a logarithmic axis."""

Key = tuple[TierName, str, str]
"""Tier, item and metric."""
Row = Mapping[str, Any]
Series = dict[str, Any]


def stage_series(rows: Sequence[Row]) -> list[Series]:
    """Return the series of a stage's summary rows, each with the bridge's value.

    A merge is at no step: it is one of the series' `merges`, a mark with a name. What has no step,
    but merges alone, has no series.

    Args:
        rows: Rows of a stage's summary, or rows with the same columns.

    Returns:
        Series in the order of the table of tiers; overall ones first in each metric.
    """
    lines: dict[Key, list[Row]] = {}
    references: dict[Key, Row] = {}
    merges: dict[Key, list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["tier"], row["item"], row["metric"])
        if row["role"] == "bridge":
            references[key] = row
        elif row["role"] == "merge":
            mark = {name: row[name] for name in ("value", "low", "high")}
            merges.setdefault(key, []).append({"name": row["merge"], **mark})
        else:
            lines.setdefault(key, []).append(row)
    return [
        {**_series(key, lines[key], references.get(key)), "merges": merges.get(key, [])}
        for key in sorted(lines, key=rank_of)
    ]


def rank_of(key: Key) -> tuple[int, int, bool]:
    """Return what series are ordered by: tier and metric as the table of tiers has them.

    Args:
        key: Tier, item and metric of a series.

    Returns:
        A key to sort by; overall series come first in each metric, unnamed metrics last.
    """
    tier, item, metric = key
    names = [known.name for known in TIERS[tier].metrics]
    rank = names.index(metric) if metric in names else len(names)
    return list(TIERS).index(tier), rank, item != OVERALL


def is_logarithmic(series: Series) -> bool:
    """Return whether the axis of a series is logarithmic.

    Args:
        series: A series with all lines and levels that are drawn in its plot.

    Returns:
        True for a perplexity that varies much, bounds included.
    """
    if TIERS[series["tier"]].metric(series["metric"]).unit != "perplexity":
        return False
    lines = series.get("lines") or [series]
    names = ("value", "low", "high", "paired_low", "paired_high")
    drawn = [point.get(name) for line in lines for point in line["points"] for name in names]
    others = (series["bridge"], *series.get("levels", ()), *series.get("merges", ()))
    drawn += [level["value"] for level in others if level]
    values: list[float] = [value for value in drawn if value is not None]
    return min(values) > 0 and max(values) > WIDE * min(values)


def with_scales(series: Iterable[Series]) -> list[Series]:
    """Return series as pages draw them.

    Args:
        series: Series with all lines and levels that are drawn in their plots.

    Returns:
        Copies with `log`: whether the axis is logarithmic.
    """
    return [{**one, "log": is_logarithmic(one)} for one in series]


def _series(key: Key, rows: Sequence[Row], bridge: Row | None) -> Series:
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
        "noise": _noise(rows),
        "note": _note(rows),
        **({"group": item} if item != OVERALL and is_mean(tier, item) else {}),
    }


def _paired(row: Row, bridge: Row | None) -> dict[str, float | None]:
    """Return the paired delta's interval about the bridge's value."""
    low, high = row.get("delta_low"), row.get("delta_high")
    if bridge is None or low is None or high is None:
        return {"paired_low": None, "paired_high": None}
    return {"paired_low": bridge["value"] + low, "paired_high": bridge["value"] + high}


def _note(rows: Sequence[Row]) -> str | None:
    """Return why some values have no interval, and at which steps."""
    lacking = [row for row in rows if row["low"] is None]
    if not lacking:
        return None
    why = next((row["note"] for row in lacking if row.get("note")), None) or "not known why"
    where = (
        "" if len(lacking) == len(rows) else f" at {steps_in_words([r['step'] for r in lacking])}"
    )
    return f"No 95 % interval{where}: {why.removeprefix('no interval: ')}."


def _noise(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return the noise of the checkpoints, and the last interval's half-width over items."""
    sd = neighbour_noise([row["step"] for row in rows], [row["value"] for row in rows])
    low, high = rows[-1]["low"], rows[-1]["high"]
    return None if sd is None else {"sd": sd, "half": None if low is None else (high - low) / 2}
