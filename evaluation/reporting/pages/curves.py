"""Curves over steps: a series for each tier, item and metric, of a stage or of all stages joined.

On the joined axis a stage begins at the checkpoint that it was trained from (`trained_from`, or else
its bridge). So two stages from one checkpoint, such as ablations, begin at the same place, each with
its own line. The line of an ablation begins with the checkpoint where it branches off. A stage without
either begins at zero.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.checkpoints.subjects import steps_so_far
from evaluation.reporting.headlines import steps_in_words
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import step_of_folder
from evaluation.settings.tiers import TIERS, TierName

WIDE = 8
"""Ratio of the largest to the smallest perplexity above which the axis is logarithmic."""

Key = tuple[TierName, str, str]
"""Tier, item and metric."""
TableRow = Mapping[str, Any]
Series = dict[str, Any]

Follows = Mapping[str, tuple[str, int] | None]
"""By stage: the stage and step that it was trained from; None where that is unknown."""


def stage_series(rows: Sequence[TableRow]) -> list[Series]:
    """Return the series of a stage's summary rows, each with the bridge's value, overall ones first."""
    lines: dict[Key, list[TableRow]] = {}
    references: dict[Key, TableRow] = {}
    for row in rows:
        key = (row["tier"], row["item"], row["metric"])
        if row["role"] == "bridge":
            references[key] = row
        else:
            lines.setdefault(key, []).append(row)
    return [_series(key, lines[key], references.get(key)) for key in sorted(lines, key=rank_of)]


def rank_of(key: Key) -> tuple[int, int, bool]:
    """Return the key that sorts series by tier and metric as in the table of tiers, overall ones first."""
    tier, item, metric = key
    names = [metric.name for metric in TIERS[tier].metrics]
    rank = names.index(metric) if metric in names else len(names)
    return list(TIERS).index(tier), rank, item != OVERALL


def is_logarithmic(series: Series) -> bool:
    """Return whether a series' axis is logarithmic: a perplexity varies much, bounds and levels included."""
    if TIERS[series["tier"]].metric(series["metric"]).unit != "perplexity":
        return False
    lines = series.get("lines") or [series]
    names = ("value", "low", "high", "paired_low", "paired_high")
    drawn = [point.get(name) for line in lines for point in line["points"] for name in names]
    others = (series["bridge"], *series.get("levels", ()))
    drawn += [level["value"] for level in others if level]
    values: list[float] = [value for value in drawn if value is not None]
    return min(values) > 0 and max(values) > WIDE * min(values)


def with_scales(series: Iterable[Series]) -> list[Series]:
    """Return copies of series with `log`: whether the axis is logarithmic, all lines and levels included."""
    return [{**curve, "log": is_logarithmic(curve)} for curve in series]


def _series(key: Key, rows: Sequence[TableRow], bridge: TableRow | None) -> Series:
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
        "noise": None,
        "note": _note(rows),
        **({"group": item} if item != OVERALL and is_mean(tier, item) else {}),
    }


def _paired(row: TableRow, bridge: TableRow | None) -> dict[str, float | None]:
    """Return the paired delta's interval about the bridge's value."""
    low, high = row.get("delta_low"), row.get("delta_high")
    if bridge is None or low is None or high is None:
        return {"paired_low": None, "paired_high": None}
    return {"paired_low": bridge["value"] + low, "paired_high": bridge["value"] + high}


def _note(rows: Sequence[TableRow]) -> str | None:
    """Return why some values have no interval, and at which steps."""
    lacking = [row for row in rows if row["low"] is None]
    if not lacking:
        return None
    why = next((row["note"] for row in lacking if row.get("note")), None) or "not known why"
    where = (
        "" if len(lacking) == len(rows) else f" at {steps_in_words([r['step'] for r in lacking])}"
    )
    return f"No 95 % interval{where}: {why.removeprefix('no interval: ')}."


def follows(plans: Mapping[str, StagePlan]) -> dict[str, tuple[str, int] | None]:
    """Return the stage and step that each stage was trained from; None where that is unknown."""
    return {name: _bridge_of(plan, plans) for name, plan in plans.items()}


def _bridge_of(plan: StagePlan, plans: Mapping[str, StagePlan]) -> tuple[str, int] | None:
    origin, bridge = plan.stage.trained_from, plan.stage.bridge
    if origin is not None:
        return origin.stage, origin.step
    if bridge is None:
        return None
    if bridge.stage is not None and bridge.stage in plans:
        steps = steps_so_far(plans[bridge.stage]) if bridge.step is None else (bridge.step,)
        return (bridge.stage, steps[-1]) if steps else None
    path = Path(bridge.path or "")
    for name, other in plans.items():
        step = step_of_folder(path.name)
        if step is not None and path == other.checkpoint(step):
            return name, step
    return None


def joined_series(stages: Mapping[str, Sequence[Series]], predecessors: Follows) -> list[Series]:
    """Return series that more than one stage has, each stage from where it begins; of one stage all.

    Stages that follow one another are one line; where some do not, each chain of stages has its own line.
    A mean is left out where stages have different slices or tasks, as it would jump at their border.
    `x` counts training steps from the first stage on.
    """
    starts = {name: _steps_before(name, predecessors) for name in stages}
    chains = _chains({name: stage for name, stage in stages.items() if stage}, predecessors, starts)
    owned: dict[tuple[str, str, str], dict[str, Series]] = {}
    for name, series in stages.items():
        for curve in series:
            owned.setdefault((curve["tier"], curve["item"], curve["metric"]), {})[name] = curve
    enough = min(2, len(stages))
    return [
        _joined(owners, starts, chains, predecessors)
        for key, owners in owned.items()
        if len(owners) >= enough and (key[1] != OVERALL or _is_one_mean(key, stages))
    ]


def _steps_before(name: str, predecessors: Follows) -> int:
    """Return the training steps before a stage; 0 where bridges form a cycle."""
    total, seen, at = 0, {name}, predecessors.get(name)
    while at is not None:
        if at[0] in seen:
            return 0
        seen.add(at[0])
        total, at = total + at[1], predecessors.get(at[0])
    return total


def _chains(
    stages: Mapping[str, Sequence[Series]], predecessors: Follows, starts: Mapping[str, int]
) -> list[list[str]]:
    """Return chains of stages that follow one another; the others begin chains of their own."""
    chains: list[list[str]] = []
    for name in stages:
        before = predecessors.get(name) if starts[name] else None
        chain = next((chain for chain in chains if before and chain[-1] == before[0]), None)
        if chain and before and before[1] >= _last_step(stages[before[0]]):
            chain.append(name)
        else:
            chains.append([name])
    return chains


def _last_step(series: Sequence[Series]) -> int:
    return max((point["step"] for curve in series for point in curve["points"]), default=0)


def _joined(
    owners: Mapping[str, Series],
    starts: Mapping[str, int],
    chains: Sequence[Sequence[str]],
    predecessors: Follows,
) -> Series:
    first = next(iter(owners.values()))
    line = {**first, "points": [], "bridge": None, "noise": None, "borders": []}
    lines: list[dict[str, Any]] = []
    for number, chain in enumerate(chains):
        points = [p for name in chain if name in owners for p in _points_of(name, owners, starts)]
        if points and (branch := _branch_point(chain[0], predecessors, owners, starts)):
            points = [branch, *points]
        lines += [{"name": " → ".join(chain), "number": number, "points": points}] if points else []
    begun = sorted({starts[name] for chain in chains for name in chain if starts[name] > 0})
    first_place = min(point["x"] for line in lines for point in line["points"])
    borders = [start for start in begun if start >= first_place]
    if len(chains) > 1:
        return {**line, "lines": lines, "borders": borders}
    return {**line, "points": lines[0]["points"], "borders": borders}


def _branch_point(
    name: str, predecessors: Follows, owners: Mapping[str, Series], starts: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return the point of the checkpoint that a stage was trained from; None where it was not scored."""
    before = predecessors.get(name) if starts[name] else None
    if before is None or before[0] not in owners:
        return None
    points = _points_of(before[0], owners, starts)
    return next((point for point in points if point["step"] == before[1]), None)


def _points_of(
    name: str, owners: Mapping[str, Series], starts: Mapping[str, int]
) -> list[dict[str, Any]]:
    return [
        {**point, "x": starts[name] + point["step"], "stage": name}
        for point in owners[name]["points"]
    ]


def _is_one_mean(key: tuple[str, str, str], stages: Mapping[str, Sequence[Series]]) -> bool:
    """Return whether an overall value is of the same slices or tasks in every stage that has it."""
    items = {
        frozenset(curve["item"] for curve in series if (curve["tier"], curve["metric"]) == key[::2])
        for series in stages.values()
    }
    return len(items - {frozenset()}) == 1
