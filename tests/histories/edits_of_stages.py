"""What a user may change in stages, suites and places of results, more than the value of a key."""

import copy
from typing import Any

from tests.histories.beginning import NEW
from tests.histories.world import HERE, KeyPath, World, require


def steps(world: World, stage: str, steps: Any) -> None:
    require(not isinstance(steps, list) or {*steps} <= {*world.on_disk(stage)})
    world.stages[stage]["steps"] = steps
    require(world.steps(stage))


def bridge(world: World, stage: str, bridge: Any) -> None:
    world.stages[stage]["bridge"] = bridge
    require((place := world.bridge(stage)) is None or place in world.places())
    if bridge is None:
        world.stages[stage].pop("objective", None)


def stage_added(world: World, name: str, bridge: Any) -> None:
    require(name not in world.stages and len(world.stages) < 3)
    world.stages[name] = {"checkpoints": f"{HERE}/ckpts/again", "steps": "all", "suites": ["base"]}
    world.stages[name] |= {"bridge": bridge} if bridge else {}
    require((place := world.bridge(name)) is None or place in world.places())


def stage_removed(world: World, stage: str) -> None:
    require(len(world.stages) > 1)
    del world.stages[stage]


def stage_renamed(world: World, stage: str, name: str) -> None:
    """Bridges of a renamed stage follow."""
    require(name not in world.stages)
    stages = {name if n == stage else n: settings for n, settings in world.stages.items()}
    world.config["stages"] = stages
    for settings in stages.values():
        if (settings.get("bridge") or {}).get("stage") == stage:
            settings["bridge"]["stage"] = name


def suite_extended(world: World, stage: str, old: str = "base", new: str = "child") -> None:
    """`child` extends `base` and overrides what is no question, so stages may differ in it."""
    require(old in world.stages[stage]["suites"])
    names = world.stages[stage]["suites"]
    world.stages[stage]["suites"] = [new if name == old else name for name in names]


def repaired(world: World) -> None:
    """Takes back what cannot be fulfilled."""
    for stage, settings in world.stages.items():
        if isinstance(settings["steps"], list):
            left = [step for step in settings["steps"] if step in world.on_disk(stage)]
            settings["steps"] = left or "all"
        if (place := world.bridge(stage)) is not None and place not in world.places():
            settings.pop("bridge")
            settings.pop("objective", None)


def item_added(world: World, new_item: KeyPath) -> None:
    require(not world.at(new_item))
    world.put(new_item, NEW[new_item[2]][new_item[3]])


def item_removed(world: World, item: KeyPath) -> None:
    """An objective without items is an error, so no tier of a suite is emptied."""
    require(len(world.at(item[:-1])) > 1)
    world.put(item, None)


def _require_free(world: World, item: KeyPath, called: str) -> None:
    suites = world.content["suites"].values()
    require(not any(called in suite.get(item[2], {}) for suite in suites))


def item_renamed(world: World, item: KeyPath, new: str = "") -> None:
    called = item[-1]
    new = new or (called.removesuffix("_x") if called.endswith("_x") else f"{called}_x")
    _require_free(world, item, new)
    items = world.at(item[:-1])
    world.put(item[:-1], {new if name == called else name: one for name, one in items.items()})


def item_copied(world: World, item: KeyPath) -> None:
    """The same questions under a second name."""
    again = f"{item[-1]}_again"
    require(item[2] != "probes" and not item[-1].endswith("_again"))
    _require_free(world, item, again)
    world.put([*item[:-1], again], copy.deepcopy(world.at(item)))


def stage_results_elsewhere(world: World, stage: str, in_place: bool) -> None:
    require(in_place != bool(world.stages[stage].get("results")))
    world.put(
        ["config", "stages", stage, "results"], f"{HERE}/elsewhere/{stage}" if in_place else None
    )


def protocol_raised(world: World, protocol: str) -> None:
    number = int(world.protocols.get(protocol, "raised-1").rpartition("-")[2]) + 1
    world.protocols[protocol] = f"raised-{number}"
