"""Curves of all stages on one axis of training steps.

A stage begins where its bridge lies: there the checkpoint was that it was trained from. So two stages
with one bridge, as ablations are, begin at the same place, each with a line of its own, and a stage
without a bridge begins at zero.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.checkpoints.subjects import steps_so_far
from evaluation.reporting.pages.curves import Series
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import step_named

Follows = Mapping[str, tuple[str, int] | None]
"""By stage: the stage and step that it was trained from; None where that is not known."""


def follows(plans: Mapping[str, StagePlan]) -> dict[str, tuple[str, int] | None]:
    """Return the stage and step that each stage was trained from.

    Args:
        plans: The plan of each stage of this run, by name.

    Returns:
        Stage and step of each stage's bridge, by stage; None where that is not known.
    """
    return {name: _bridge_of(plan, plans) for name, plan in plans.items()}


def _bridge_of(plan: StagePlan, plans: Mapping[str, StagePlan]) -> tuple[str, int] | None:
    bridge = plan.stage.bridge
    if bridge is None:
        return None
    if bridge.stage is not None and bridge.stage in plans:
        steps = steps_so_far(plans[bridge.stage]) if bridge.step is None else (bridge.step,)
        return (bridge.stage, steps[-1]) if steps else None
    path = Path(bridge.path or "")
    for name, other in plans.items():
        step = step_named(path.name)
        if step is not None and path.parent == Path(other.stage.checkpoints):
            return name, step
    return None


def joined_series(stages: Mapping[str, Sequence[Series]], known: Follows) -> list[Series]:
    """Return series that more than one stage has, each stage from where it begins.

    Stages that follow one another are one line; where some do not, each way has a line of its own.
    A mean over slices or tasks is left out where stages have others: it would jump at their border.

    Args:
        stages: The series of each stage, by name.
        known: What `follows` returned.

    Returns:
        Series whose `x` counts training steps from the first stage on; of one stage all its series.
    """
    starts = {name: _start(name, known) for name in stages}
    chains = _chains({name: one for name, one in stages.items() if one}, known, starts)
    owned: dict[tuple[str, str, str], dict[str, Series]] = {}
    for name, series in stages.items():
        for one in series:
            owned.setdefault((one["tier"], one["item"], one["metric"]), {})[name] = one
    enough = min(2, len(stages))
    return [
        _joined(owners, starts, chains)
        for key, owners in owned.items()
        if len(owners) >= enough and (key[1] != OVERALL or _is_one_mean(key, stages))
    ]


def _start(name: str, known: Follows) -> int:
    """Return the training steps before a stage; bridges that run in a circle lead nowhere."""
    total, seen, at = 0, {name}, known.get(name)
    while at is not None:
        if at[0] in seen:
            return 0
        seen.add(at[0])
        total, at = total + at[1], known.get(at[0])
    return total


def _chains(
    stages: Mapping[str, Sequence[Series]], known: Follows, starts: Mapping[str, int]
) -> list[list[str]]:
    """Return chains of stages that follow one another; the others begin chains of their own."""
    chains: list[list[str]] = []
    for name in stages:
        before = known.get(name) if starts[name] else None
        chain = next((one for one in chains if before and one[-1] == before[0]), None)
        if chain and before and before[1] >= _last_step(stages[before[0]]):
            chain.append(name)
        else:
            chains.append([name])
    return chains


def _last_step(series: Sequence[Series]) -> int:
    return max((point["step"] for one in series for point in one["points"]), default=0)


def _joined(
    owners: Mapping[str, Series], starts: Mapping[str, int], chains: Sequence[Sequence[str]]
) -> Series:
    first = next(iter(owners.values()))
    line = {**first, "points": [], "merges": [], "bridge": None, "noise": None, "borders": []}
    lines: list[dict[str, Any]] = []
    for number, chain in enumerate(chains):
        own = [p for name in chain if name in owners for p in _points(name, owners, starts)]
        lines += [{"name": " → ".join(chain), "number": number, "points": own}] if own else []
    if len(chains) > 1:
        return {**line, "lines": lines}
    points, begun = lines[0]["points"], [starts[name] for name in chains[0] if starts[name] > 0]
    borders = [start for start in begun if start >= points[0]["x"]]
    return {**line, "points": points, "borders": borders}


def _points(
    name: str, owners: Mapping[str, Series], starts: Mapping[str, int]
) -> list[dict[str, Any]]:
    return [
        {**point, "x": starts[name] + point["step"], "stage": name}
        for point in owners[name]["points"]
    ]


def _is_one_mean(key: tuple[str, str, str], stages: Mapping[str, Sequence[Series]]) -> bool:
    """Return whether an overall value is of the same slices or tasks in every stage that has it."""
    items = {
        frozenset(one["item"] for one in series if (one["tier"], one["metric"]) == key[::2])
        for series in stages.values()
    }
    return len(items - {frozenset()}) == 1
