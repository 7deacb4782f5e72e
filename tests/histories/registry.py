"""All edits by name, and how one is added.

An edit lists what it could do to a model, as plain values, and does one of these.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tests.histories.model import Model

Choices = Callable[[Model], Iterable[tuple[Any, ...]]]
Change = Callable[..., None]


class Edit(NamedTuple):
    """The arguments that it could be given, what it does with them, and what it is an edit of."""

    choices: Choices
    change: Change
    about: str


EDITS: dict[str, Edit] = {}
"""Complete once `tests.histories.edits` is imported."""


def edit(choices: Choices, about: str = "") -> Callable[[Change], Change]:
    """Registers an edit, of what its module is about if nothing else is said."""

    def register(change: Change) -> Change:
        own = about or change.__module__.rpartition("edits_of_")[2]
        EDITS[change.__name__] = Edit(choices, change, own)
        return change

    return register


def items(model: Model, section: str) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Suite, name and keys of every item of a section."""
    for suite, content in model.suites.items():
        for name, item in content.get(section, {}).items():
            yield suite, name, item


def values(section: str, key: str, *values: Any) -> Choices:
    """An item of this section given another value of one key; None takes the key away."""

    def choices(model: Model) -> Iterable[tuple[Any, ...]]:
        return [
            (suite, name, value)
            for suite, name, item in items(model, section)
            for value in values
            if item.get(key) != value
        ]

    return choices


def put(model: Model, section: str, key: str, where: tuple[str, str], value: Any) -> None:
    item = model.suites[where[0]][section][where[1]]
    if value is None:
        item.pop(key, None)
    else:
        item[key] = value


def putting(section: str, key: str, *given: Any, name: str) -> None:
    """Registers an edit that does no more than give a key one of these values."""

    def change(model: Model, suite: str, item: str, value: Any) -> None:
        put(model, section, key, (suite, item), value)

    about = "answers" if section == "generation_tasks" else "suites"
    EDITS[name] = Edit(values(section, key, *given), change, about)
