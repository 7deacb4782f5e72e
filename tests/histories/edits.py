"""All that a user, or a trainer, may change: keys that get other values, and what is more than that.

`edits.yaml` has the keys. Any other edit is a function of a module `edits_of_*`; what it may be given follows
from the names of its parameters, and it raises Impossible where it cannot be done.
"""

import copy
import inspect
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from evaluation.errors import EvaluationError
from tests.histories import edits_of_checkpoints, edits_of_sources, edits_of_stages
from tests.histories.beginning import NEW
from tests.histories.world import Impossible, KeyPath, World, require

TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
OPTIONS: dict[str, list[Any]] = TABLES.pop("options")
"""Values of parameters that are the same in every world."""
KEYS: dict[str, dict[str, dict[str, list[Any]]]] = TABLES
"""By what they are about, edits of keys: their places, and the values that each may have."""

Edit = Callable[..., None]


def _edits(module: ModuleType) -> dict[str, Edit]:
    functions = inspect.getmembers(module, inspect.isfunction)
    own = {name: one for name, one in functions if one.__module__ == module.__name__}
    return {name: one for name, one in own.items() if not name.startswith("_")}


FUNCTIONS: dict[str, dict[str, Edit]] = {
    "checkpoints": _edits(edits_of_checkpoints),
    "sources": _edits(edits_of_sources),
    "stages": _edits(edits_of_stages),
}
"""By what they are about, edits that are more than the value of a key."""
EDITS = {name: edit for edits in FUNCTIONS.values() for name, edit in edits.items()}


def names_about(about: str) -> list[str]:
    return [*KEYS.get(about, ()), *FUNCTIONS.get(about, ())]


def apply(world: World, name: str, *arguments: Any) -> None:
    """Does an edit; raises Impossible, with the settings as they were."""
    before, edit = copy.deepcopy(world.content), EDITS.get(name)
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
    names = inspect.signature(EDITS[name]).parameters
    arguments = [dice.choice(options) for one in names if (options := _options(world, one))]
    plain: list[Any] = json.loads(json.dumps(arguments))
    return plain


def _options(world: World, parameter: str) -> list[Any]:
    """The values of a parameter."""
    options = OPTIONS.get(parameter, [])
    if parameter in ("place", "anywhere"):
        return [*world.places(), *options]
    if parameter == "stage":
        return [*world.stages]
    if parameter == "dataset":
        return [*world.config["mirrors"]]
    if parameter == "file":
        paths = [path for name in world.config["mirrors"] for path in world.behind(name)]
        return [str(path.relative_to(world.folder)) for path in paths]
    if parameter == "item":
        return [path for section in NEW for path in _places(world, f"suites.*.{section}.*")]
    if parameter == "new_item":
        items = [[section, name] for section in NEW for name in NEW[section]]
        return [["suites", suite, *item] for suite in ("base", "sft") for item in items]
    if parameter == "bridge":
        steps = [{"stage": name, **at} for name in world.stages for at in OPTIONS["bridge_steps"]]
        return [*options, *steps]
    return options


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
            yield from ([path, value] for value in values if holder.get(path[-1]) != value)


def _order(world: World, patterns: Iterable[str]) -> Iterator[list[Any]]:
    for path in (path for pattern in patterns for path in _places(world, pattern)):
        if isinstance(found := world.at(path), dict | list):
            yield from ([path, number] for number in range(len(found) - 1))
