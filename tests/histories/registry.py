"""All edits by name, and how one is added.

An edit lists what it could do to a model, as plain values, and does one of these.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.histories.model import Model

Choices = Callable[[Model], Iterable[tuple[Any, ...]]]
Change = Callable[..., None]
Path = list[Any]
"""Keys that lead to a value of the configuration or of the suites."""


class Edit(NamedTuple):
    """The arguments that it could be given, what it does with them, and what it is an edit of."""

    choices: Choices
    change: Change
    about: str


OF_PROVIDED = ("group", "limit", "primary")
"""Keys of a provider's task among those that get other values."""

EDITS: dict[str, Edit] = {}
"""Complete once `tests.histories.edits` is imported."""


def edit(choices: Choices, about: str = "") -> Callable[[Change], Change]:
    """Registers an edit, of what its module is about if nothing else is said."""

    def register(change: Change) -> Change:
        own = about or change.__module__.rpartition("edits_of_")[2]
        EDITS[change.__name__] = Edit(choices, change, own)
        return change

    return register


def at(model: Model, path: Path) -> Any:
    """What lies at a path; nothing where a key is missing."""
    found: Any = {"config": model.config, "suites": model.suites}
    for key in path:
        found = found.get(key, {}) if isinstance(found, dict) else found[key]
    return found


def places(model: Model, pattern: str) -> Iterator[Path]:
    """The paths of a pattern such as `suites.*.tasks.*.gold`, whose last key may be missing."""
    found: list[Path] = [[]]
    for key in pattern.split("."):
        found = [[*path, k] for path in found for k in _keys(at(model, path), key)]
    yield from found


def _keys(holder: Any, key: str) -> Iterable[Any]:
    if key != "*":
        return [key]
    return list(holder) if isinstance(holder, dict) else range(len(holder))


def put(model: Model, path: Path, value: Any) -> None:
    """Gives a key a value; None takes the key away."""
    holder: Any = {"config": model.config, "suites": model.suites}
    for key in path[:-1]:
        holder = holder.setdefault(key, {}) if isinstance(holder, dict) else holder[key]
    if value is None:
        holder.pop(path[-1], None)
    else:
        holder[path[-1]] = copy.deepcopy(value)


def other_values(
    values: Mapping[str, Iterable[Any]], fits: Callable[[Any, Any], bool] | None = None
) -> Choices:
    """The choices of a value for each place of these patterns, but for the one that it has."""

    def choices(model: Model) -> Iterator[tuple[Any, ...]]:
        for path, value in (
            (p, v) for name, own in values.items() for p in places(model, name) for v in own
        ):
            holder = at(model, path[:-1])
            if "provider" in holder and path[-1] not in OF_PROVIDED:
                continue
            if holder.get(path[-1]) != value and (fits is None or fits(holder, value)):
                yield path, value

    return choices


def swap(model: Model, path: Path, number: int) -> None:
    """An entry of a list or mapping and the one behind it change places."""
    found = at(model, path)
    entries = list(found.items()) if isinstance(found, dict) else list(found)
    entries[number : number + 2] = entries[number : number + 2][::-1]
    put(model, path, dict(entries) if isinstance(found, dict) else entries)


def neighbours(*patterns: str) -> Choices:
    """The choices of two entries that could change places."""

    def choices(model: Model) -> Iterator[tuple[Any, ...]]:
        for path in (path for pattern in patterns for path in places(model, pattern)):
            if isinstance(found := at(model, path), dict | list):
                yield from ((path, number) for number in range(len(found) - 1))

    return choices
