"""What a user may change in stages, suites and places of results, more than the value of a key."""

import copy
import time
from typing import Any

from tests.histories.beginning import content
from tests.histories.edits import require
from tests.histories.world import HERE, World, configurations

NEW = content()["new"]
PLACES = {
    "results": "results",
    "configuration": "config.yaml",
    "stage": "results/stage1",
    "checkpoint": "results/stage1/by_checkpoint/step_10",
    "nothing": "nowhere",
}
"""What of another run its path may lead to."""


def steps(world: World, stage: str, steps: Any) -> None:
    require(not isinstance(steps, list) or {*steps} <= {*world.on_disk(stage)})
    world.stages[stage]["steps"] = steps
    require(world.steps(stage))


def step_not_there(world: World, stage: str, absent: int) -> None:
    world.stages[stage]["steps"] = [*world.steps(stage), absent]
    world.faults.add("steps")


def bridge(world: World, stage: str, bridge: Any) -> None:
    world.stages[stage]["bridge"] = bridge
    require((place := world.bridge(stage)) is None or place in world.places())
    if bridge is None:
        world.stages[stage].pop("objective", None)


def bridge_not_there(world: World, stage: str, absent_bridge: Any) -> None:
    world.stages[stage]["bridge"] = absent_bridge
    world.faults.add("bridge")


def stage_added(world: World, name: str, bridge: Any) -> None:
    require(
        name not in world.stages and len(world.stages) < 3 and world.checkpoint("side/7").exists()
    )
    world.stages[name] = {"checkpoints": f"{HERE}/ckpts/side", "steps": "all", "suites": ["base"]}
    world.stages[name] |= {"bridge": bridge} if bridge else {}


def stage_removed(world: World, stage: str) -> None:
    require(len(world.stages) > 1)
    del world.stages[stage]


def _rename(world: World, names: dict[str, str]) -> None:
    """Bridges of renamed stages follow."""
    world.config["stages"] = {names.get(name, name): own for name, own in world.stages.items()}
    for own in world.stages.values():
        if (owner := (own.get("bridge") or {}).get("stage")) in names:
            own["bridge"]["stage"] = names[owner]


def stage_renamed(world: World, stage: str, name: str) -> None:
    require(name not in world.stages)
    _rename(world, {stage: name})


def stages_swapped(world: World, stage: str, other_stage: str) -> None:
    """Two stages take each other's name, and each has the results of the other."""
    require(stage != other_stage)
    _rename(world, {stage: other_stage, other_stage: stage})


def suite_extended(world: World, stage: str, old: str = "base", new: str = "child") -> None:
    """`child` extends `base` and overrides what is no question, so stages may differ in it."""
    require(old in world.stages[stage]["suites"])
    names = world.stages[stage]["suites"]
    world.stages[stage]["suites"] = [new if name == old else name for name in names]


def repaired(world: World) -> None:
    """Takes back what cannot be fulfilled, and copies anew what has no configuration."""
    for place in world.places():
        if not configurations(world.checkpoint(place)):
            world.forget(place)
            world.copy_in(place, *world.seeds[place], time.time())
    for stage, own in world.stages.items():
        if isinstance(own["steps"], list):
            own["steps"] = [step for step in own["steps"] if step in world.on_disk(stage)] or "all"
    first = next(iter(world.stages))
    for stage, own in world.stages.items():
        if (place := world.bridge(stage)) is not None and place not in world.places():
            own["bridge"] = {"stage": first, "step": world.on_disk(first)[0]}
    world.faults -= {"steps", "bridge"}


def item_added(world: World, new_item: str, section: str, called: str) -> None:
    suite = world.content["suites"][new_item]
    require(called not in suite.get(section, {}))
    suite.setdefault(section, {})[called] = copy.deepcopy(NEW[section][called])


def item_removed(world: World, item: str, section: str, called: str) -> None:
    """An objective without items is an error, so no tier of a suite is emptied."""
    own = world.content["suites"][item][section]
    require(len(own) > 1)
    del own[called]


def _is_free(world: World, section: str, called: str) -> bool:
    return not any(called in own.get(section, {}) for own in world.content["suites"].values())


def item_renamed(world: World, item: str, section: str, called: str, new: str = "") -> None:
    new = new or (called.removesuffix("_x") if called.endswith("_x") else f"{called}_x")
    require(_is_free(world, section, new))
    own = world.content["suites"][item]
    own[section] = {new if n == called else n: one for n, one in own[section].items()}


def item_copied(world: World, item: str, section: str, called: str) -> None:
    """The same questions under a second name."""
    require(section != "probes" and not called.endswith("_again"))
    require(_is_free(world, section, f"{called}_again"))
    own = world.content["suites"][item][section]
    own[f"{called}_again"] = copy.deepcopy(own[called])


def stage_results_elsewhere(world: World, stage: str, in_place: bool) -> None:
    require(in_place != bool(world.stages[stage].get("results")))
    world.put(
        ["config", "stages", stage, "results"], f"{HERE}/elsewhere/{stage}" if in_place else None
    )


def protocol_raised(world: World, protocol: str) -> None:
    number = int(world.protocols.get(protocol, "raised-1").rpartition("-")[2]) + 1
    world.protocols[protocol] = f"raised-{number}"


def provider_upgraded(world: World) -> None:
    """Another version is required and installed, which asks otherwise."""
    world.provider = world.provider[0] + 1, world.provider[1]
    world.write_provider()


def provider_reinstalled(world: World) -> None:
    """The same program in a new file."""
    world.provider = world.provider[0], world.provider[1] + 1
    world.write_provider()


def other_run(world: World, run_place: str, by: str) -> None:
    path = world.pool.parent / "other" / PLACES[run_place]
    world.config["runs"] = {"other": {"path": str(path), "by": by}}


def other_run_removed(world: World) -> None:
    require("runs" in world.config)
    del world.config["runs"]
