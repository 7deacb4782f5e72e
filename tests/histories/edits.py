"""All that a user, or a trainer, may change: keys that get other values, and what is more than that.

`edits.yaml` has the keys. Any other edit is a function of a module `edits_of_*`; what it may be given follows
from the names of its parameters, and it raises Impossible where it cannot be done.
"""

import copy
import inspect
import json
import random
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import EvaluationError
from tests.histories.beginning import content
from tests.histories.world import HERE, KeyPath, World

TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
OPTIONS: dict[str, list[Any]] = TABLES.pop("options")
"""Values of parameters that are the same in every world."""
KEYS: dict[str, dict[str, dict[str, list[Any]]]] = TABLES
"""By what they are about, edits of keys: their places, and the values that each may have."""


class Impossible(Exception):
    """An edit that cannot be done, or that leaves a configuration which contradicts itself."""


def require(condition: object) -> None:
    if not condition:
        raise Impossible


def functions(about: str) -> dict[str, Callable[..., None]]:
    """Edits of a kind that are more than the value of a key."""
    module = import_module(f"tests.histories.edits_of_{about}")
    found = inspect.getmembers(module, inspect.isfunction)
    ours = [(name, one) for name, one in found if one.__module__ == module.__name__]
    return {name: one for name, one in ours if not name.startswith("_")}


def function(name: str) -> Callable[..., None] | None:
    all_of = (functions(about) for about in ("checkpoints", "sources", "stages"))
    return next((one[name] for one in all_of if name in one), None)


def names_about(about: str) -> list[str]:
    own = functions(about) if about in ("checkpoints", "sources", "stages") else ()
    return [*KEYS.get(about, ()), *own]


def apply(world: World, name: str, *arguments: Any) -> None:
    """Does an edit; raises Impossible, with the settings as they were."""
    before, edit = copy.deepcopy(world.content), function(name)
    try:
        if name.startswith("order_of_"):
            world.swap(*arguments)
        elif edit:
            edit(world, *arguments)
        else:
            path, value = arguments
            world.put(path, value)
            if path[-1] == "verifiers":  # the primary one may be none of them
                world.put([*path[:-1], "primary"], None)
        world.write()
        world.check()
    except (Impossible, EvaluationError) as error:
        world.content = before
        world.write()
        raise Impossible(f"{name} {arguments}: {error}") from error


def draw(world: World, name: str, dice: random.Random) -> list[Any]:
    """Arguments for an edit, drawn from all there are; raises Impossible if there are none."""
    for places in (edits[name] for edits in KEYS.values() if name in edits):
        find = _order if name.startswith("order_of_") else _values
        found = [*find(world, places)]
        require(found)
        return dice.choice(found)
    arguments: list[Any] = []
    for parameter in inspect.signature(function(name) or draw).parameters:
        if options := _options(world, parameter):
            chosen = dice.choice(options)
            arguments += chosen if parameter in ("item", "new_item") else [chosen]
    plain: list[Any] = json.loads(json.dumps(arguments))
    return plain


def _options(world: World, parameter: str) -> list[Any]:
    """The values of a parameter; those of `item` and `new_item` are three arguments."""
    if parameter in ("place", "another", "anywhere"):
        return [*world.places(), *OPTIONS.get(parameter, ())]
    if parameter in ("stage", "other_stage"):
        return [*world.stages]
    if parameter == "dataset":
        return [*world.config["mirrors"]]
    if parameter == "file":
        paths = [path for name in world.config["mirrors"] for path in world.behind(name)]
        return [str(path.relative_to(world.folder)) for path in paths]
    if parameter in ("item", "new_item"):
        new: dict[str, Any] = content()["new"]
        suites = world.content["suites"] if parameter == "item" else {"base": new, "sft": new}
        items = ((suite, section) for suite in suites for section in new)
        return [(*one, name) for one in items for name in suites[one[0]].get(one[1], ())]
    if parameter == "bridge":
        stages = [{"stage": name, **at} for name in world.stages for at in OPTIONS["bridge_steps"]]
        return [None, {"path": f"{HERE}/ckpts/side/7"}, {"path": f"{HERE}/ckpts/one/30"}, *stages]
    if parameter == "absent_bridge":
        return [{"stage": next(iter(world.stages)), "step": 77}]
    return [*OPTIONS.get(parameter, ())]


def _places(world: World, pattern: str) -> Iterator[KeyPath]:
    """The paths of a pattern such as `suites.*.tasks.*.gold`, whose last key may be missing."""
    found: list[KeyPath] = [[]]
    for key in pattern.split("."):
        found = [[*path, k] for path in found for k in _keys(world.at(path), key)]
    yield from found


def _keys(holder: Any, key: str) -> Iterable[Any]:
    if key != "*":
        return [key]
    return list(holder) if isinstance(holder, dict) else range(len(holder))


def _values(world: World, patterns: dict[str, list[Any]]) -> Iterator[list[Any]]:
    for pattern, values in patterns.items():
        for path in _places(world, pattern):
            holder = world.at(path[:-1])
            if "provider" not in holder or path[-1] in ("group", "limit", "primary"):
                yield from ([path, value] for value in values if holder.get(path[-1]) != value)


def _order(world: World, patterns: Iterable[str]) -> Iterator[list[Any]]:
    for path in (path for pattern in patterns for path in _places(world, pattern)):
        if isinstance(found := world.at(path), dict | list):
            yield from ([path, number] for number in range(len(found) - 1))
