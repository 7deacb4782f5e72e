"""What a user may change in suites, more than a key's value: items, and the verifiers of a task."""

import copy
from collections.abc import Iterable
from typing import Any

from tests.histories.beginning import content
from tests.histories.model import Model
from tests.histories.registry import Path, edit, other_values, put
from tests.workflow.world import FIRST_LETTER, LAST_LETTER

NEW: dict[str, dict[str, Any]] = content()["new"]

Place = tuple[str, str, str]
"""Suite, section and name of an item."""


def _items(model: Model) -> Iterable[Place]:
    for section in NEW:
        for suite, own in model.suites.items():
            yield from ((suite, section, name) for name in own.get(section, {}))


def _names(model: Model, section: str) -> list[str]:
    return [name for _, other, name in _items(model) if other == section]


def _is_overridden(model: Model, section: str, name: str) -> bool:
    """Whether a suite that extends another overrides this item."""
    return any(name in own.get("overrides", {}).get(section, {}) for own in model.suites.values())


@edit(
    lambda model: [
        (suite, section, name)
        for section, new in NEW.items()
        for suite in ["sft" if section in ("probes", "generation_tasks") else "base"]
        for name in new
        if name not in model.suites[suite].get(section, {})
    ]
)
def item_added(model: Model, suite: str, section: str, name: str) -> None:
    model.suites[suite].setdefault(section, {})[name] = copy.deepcopy(NEW[section][name])


@edit(
    lambda model: [
        (suite, section, name)
        for suite, section, name in _items(model)
        if len(model.suites[suite][section]) > 1 and not _is_overridden(model, section, name)
    ]
)
def item_removed(model: Model, suite: str, section: str, name: str) -> None:
    """An objective without items is an error, so no tier of a suite is emptied."""
    del model.suites[suite][section][name]


@edit(
    lambda model: [
        (suite, section, name, new)
        for suite, section, name in _items(model)
        for new in [name.removesuffix("_x") if name.endswith("_x") else f"{name}_x"]
        if new not in _names(model, section) and not _is_overridden(model, section, name)
    ]
)
def item_renamed(model: Model, suite: str, section: str, old: str, new: str) -> None:
    own = model.suites[suite][section]
    model.suites[suite][section] = {new if n == old else n: item for n, item in own.items()}


@edit(
    lambda model: [
        (suite, section, name)
        for suite, section, name in _items(model)
        if section != "probes" and len(names := _names(model, section)) < 4
        if f"{name}_again" not in names and not name.endswith("_again")
    ]
)
def item_copied(model: Model, suite: str, section: str, name: str) -> None:
    """The same questions under a second name."""
    own = model.suites[suite][section]
    own[f"{name}_again"] = dict(own[name])


VERIFIERS = (
    {"lenient": LAST_LETTER},
    {"loose": LAST_LETTER},
    {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    {"strict": {**FIRST_LETTER, "ignore_case": True}, "lenient": LAST_LETTER},
)


@edit(other_values({"suites.*.generation_tasks.*.verifiers": VERIFIERS}), about="answers")
def answers_verifiers(model: Model, path: Path, value: Any) -> None:
    put(model, [*path[:-1], "primary"], None)
    put(model, path, value)
