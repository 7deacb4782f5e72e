"""Lines that change places: in configuration and suites, and nothing else is edited."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.histories.model import SECTIONS, Model
from tests.histories.registry import EDITS, Edit, items

Path = list[Any]


def _at(model: Model, path: Path) -> Any:
    found: Any = {"config": model.config, "suites": model.suites}
    for key in path:
        found = found[key]
    return found


def _swapped(found: Any, number: int) -> Any:
    """A list or mapping in which an entry and the one behind it have changed places."""
    entries = list(found.items()) if isinstance(found, dict) else list(found)
    entries[number : number + 2] = entries[number : number + 2][::-1]
    return dict(entries) if isinstance(found, dict) else entries


def _change(model: Model, path: Path, number: int) -> None:
    _at(model, path[:-1])[path[-1]] = _swapped(_at(model, path), number)


def _order_of(name: str, places: Callable[[Model], Iterable[Path]]) -> None:
    """Registers an edit of the order in what lies at these places."""

    def choices(model: Model) -> Iterator[tuple[Any, ...]]:
        for path in places(model):
            for number in range(len(_at(model, path)) - 1):
                yield path, number

    EDITS[f"order_of_{name}"] = Edit(choices, _change, "order")


def _key_of(sections: Iterable[str], key: str) -> Callable[[Model], Iterator[Path]]:
    def places(model: Model) -> Iterator[Path]:
        for section in sections:
            for suite, name, item in items(model, section):
                if len(item.get(key, ())) > 1:
                    yield ["suites", suite, section, name, key]

    return places


def _sections(model: Model) -> Iterator[Path]:
    for suite, content in model.suites.items():
        for section in SECTIONS:
            if section in content:
                yield ["suites", suite, section]


def _items(model: Model) -> Iterator[Path]:
    for section in SECTIONS:
        for suite, name, _ in items(model, section):
            yield ["suites", suite, section, name]


def _of_stages(key: str) -> Callable[[Model], Iterator[Path]]:
    def places(model: Model) -> Iterator[Path]:
        for stage, own in model.stages.items():
            if isinstance(own.get(key), list):
                yield ["config", "stages", stage, key]

    return places


_order_of("let", _key_of(("tasks", "generation_tasks"), "let"))
_order_of("verifiers", _key_of(("generation_tasks",), "verifiers"))
_order_of("strata", _key_of(("generation_tasks",), "strata"))
_order_of("checks", _key_of(("probes",), "checks"))
_order_of("items", _sections)
_order_of("keys", _items)
_order_of("sections", lambda model: [["suites", suite] for suite in model.suites])
_order_of("stages", lambda _: [["config", "stages"]])
_order_of("settings", lambda _: [["config", "verification"], ["config", "mirrors"]])
_order_of("suites", _of_stages("suites"))
_order_of("aims", _of_stages("objective"))
_order_of("steps", _of_stages("steps"))
