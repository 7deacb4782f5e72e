"""What a user may change in stages: their steps, bridges, names, suites and objectives."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from tests.histories.model import HERE, Model
from tests.histories.registry import edit


def _other_steps(model: Model) -> Iterable[tuple[Any, ...]]:
    for stage in model.stages:
        there, now = model.on_disk(stage), model.steps(stage)
        ways: list[Any] = ["all", {"every": 10}, {"every": 5}]
        ways += [sorted({*now, step}) for step in there if step not in now]
        ways += [[step for step in now if step != left] for left in now if len(now) > 1]
        for way in ways:
            if way != model.stages[stage]["steps"] and _finds(model, stage, way):
                yield stage, way


def _finds(model: Model, stage: str, way: Any) -> bool:
    every = way["every"] if isinstance(way, dict) else 1
    return isinstance(way, list) or any(step % every == 0 for step in model.on_disk(stage))


@edit(_other_steps)
def steps(model: Model, stage: str, value: Any) -> None:
    model.stages[stage]["steps"] = value


@edit(lambda model: [(stage, 99) for stage in model.stages])
def step_not_there(model: Model, stage: str, step: int) -> None:
    model.stages[stage]["steps"] = [*model.steps(stage), step]


def _other_bridges(model: Model) -> Iterable[tuple[Any, ...]]:
    names = list(model.stages)
    for stage in names[1:]:
        ways: list[Any] = [None, {"path": f"{HERE}/ckpts/side/7"}, {"stage": names[0]}]
        ways += [{"stage": names[0], "step": step} for step in model.on_disk(names[0])]
        ways += [{"path": f"{HERE}/ckpts/one/30"}]
        for way in ways:
            if way != model.stages[stage].get("bridge"):
                yield stage, way


@edit(_other_bridges)
def bridge(model: Model, stage: str, value: Any) -> None:
    model.stages[stage]["bridge"] = value
    if value is None:
        model.stages[stage].pop("objective", None)


@edit(
    lambda model: [
        (stage, value)
        for first, *others in [list(model.stages)]
        for stage in others
        for value in ({"stage": first, "step": 77}, {"path": f"{HERE}/ckpts/side/8"})
    ]
)
def bridge_not_there(model: Model, stage: str, value: Any) -> None:
    model.stages[stage]["bridge"] = value


@edit(
    lambda model: [
        (name, bridge)
        for name in ("ablation_A", "0-shot.x")
        if name not in model.stages and len(model.stages) < 3 and "side/7" in model.checkpoints
        for bridge in (None, {"stage": next(iter(model.stages)), "step": 20})
    ]
)
def stage_added(model: Model, name: str, bridge: Any) -> None:
    stage = {"checkpoints": f"{HERE}/ckpts/side", "steps": "all", "suites": ["base"]}
    model.stages[name] = {**stage, "bridge": bridge} if bridge else stage


def _bridge_stage(stage: dict[str, Any]) -> str | None:
    """The stage that another one's bridge is a step of."""
    return (stage.get("bridge") or {}).get("stage")


@edit(
    lambda model: [
        (name,)
        for name in model.stages
        if len(model.stages) > 1 and name not in {*map(_bridge_stage, model.stages.values())}
    ]
)
def stage_removed(model: Model, name: str) -> None:
    del model.stages[name]


def _renamings(model: Model) -> Iterable[tuple[Any, ...]]:
    fresh = [name for name in ("ablation_B", "stage2x", "pre") if name not in model.stages]
    return [(old, fresh[0]) for old in model.stages if fresh and old != fresh[0]]


@edit(_renamings)
def stage_renamed(model: Model, old: str, new: str) -> None:
    model.config["stages"] = {
        new if name == old else name: stage for name, stage in model.stages.items()
    }
    for stage in model.stages.values():
        if _bridge_stage(stage) == old:
            stage["bridge"] = {**stage["bridge"], "stage": new}


@edit(lambda model: combinations(model.stages, 2))
def stages_swapped(model: Model, one: str, other: str) -> None:
    """Two stages take each other's name, and each has the results of the other."""
    names = {one: other, other: one}
    model.config["stages"] = {names.get(name, name): own for name, own in model.stages.items()}
    for stage in model.stages.values():
        if (owner := _bridge_stage(stage)) in names:
            stage["bridge"] = {**stage["bridge"], "stage": names[owner]}


@edit(
    lambda model: [
        (stage, old, new)
        for stage, own in model.stages.items()
        for old, new in (("base", "child"), ("child", "base"))
        if old in own["suites"]
    ]
)
def suite_extended(model: Model, stage: str, old: str, new: str) -> None:
    """`child` extends `base` and overrides what is no question, so stages may differ in it."""
    names = model.stages[stage]["suites"]
    model.stages[stage]["suites"] = [new if name == old else name for name in names]


@edit(
    lambda model: [
        (stage, tier)
        for stage, own in model.stages.items()
        if own.get("bridge")
        for tier in ("tier2", "tier3", "tier5")
        if tier != "tier5" or model.suite(stage)["generation_tasks"]
    ]
)
def objective(model: Model, stage: str, tier: str) -> None:
    objectives = model.stages[stage].setdefault("objective", [])
    if len(objectives) < 3:
        objectives.append({"tier": tier, "want": "improve", "margin": 0.0})
    else:
        objectives.pop(0)


@edit(lambda model: [(s,) for s, own in model.stages.items() if len(own.get("objective", [])) > 1])
def objective_taken_away(model: Model, stage: str) -> None:
    model.stages[stage]["objective"].pop()
