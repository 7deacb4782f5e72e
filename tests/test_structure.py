"""Modules import downwards: only from packages above theirs in CONTRIBUTING.md's table, never in a circle."""

import ast
import re
from graphlib import TopologicalSorter

from tests.conftest import ROOT
from tests.rooms import AT_MOST
from tests.rooms import rooms as lines_of_rooms

PACKAGE = ROOT / "evaluation"
ENTRIES = {"__init__", "__main__"}
"""The public door and the command line, which are above all others."""


def modules_of(tree: ast.Module) -> set[str]:
    """Return the modules of this package that a file imports anywhere, also for types or in a function."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name for name in below if exists(name)} or {node.module}
    return {name for name in names if name.startswith("evaluation.")}


def exists(module: str) -> bool:
    path = ROOT / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


IMPORTS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): modules_of(
        ast.parse(path.read_text(encoding="utf-8"))
    )
    for path in sorted(PACKAGE.rglob("*.py"))
}


def floors() -> dict[str, int]:
    """Return the row of the table that each package is in, by its name below `evaluation`."""
    rows = re.findall(r"^\| (`evaluation/[^|]+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    names = [re.findall(r"`(?:evaluation/)?(\w+)(?:/|\.py)`", row) for row in rows]
    return {name: floor for floor, row in enumerate(names) for name in row}


def test_the_table_has_each_package() -> None:
    tops = {module.split(".")[1] for module in IMPORTS if "." in module}
    assert floors().keys() == tops - ENTRIES


def test_each_package_is_in_a_room() -> None:
    rooms = {part for room in AT_MOST for part in room.split()}
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= rooms
    assert sum(lines_of_rooms().values()) > 10_000


def test_packages_import_from_those_above_them() -> None:
    floor = floors()
    upwards = [
        (module, used)
        for module, imports in IMPORTS.items()
        if (top := module.partition(".")[2].split(".")[0]) and top not in ENTRIES
        for used in imports
        if floor[used.split(".")[1]] > floor[top]
    ]
    assert upwards == []


def test_rooms_are_on_at_most_nine_floors() -> None:
    """A room is above all that it imports; the files beside the folders are one room."""
    below: dict[str, set[str]] = {}
    for module, imports in IMPORTS.items():
        room, *used = (name.split(".")[1] if "." in name else "" for name in (module, *imports))
        if room not in {"", *ENTRIES}:
            below.setdefault(room_of(room), set()).update(map(room_of, used))
    floor: dict[str, int] = {}
    for room in TopologicalSorter({r: b - {r} for r, b in below.items()}).static_order():
        floor[room] = 1 + max((floor[other] for other in below[room] - {room}), default=0)
    assert max(floor.values()) <= 9, floor


def room_of(top: str) -> str:
    return top if (PACKAGE / top).is_dir() else "root"


def test_no_modules_import_each_other_in_a_circle() -> None:
    order = list(TopologicalSorter(IMPORTS).static_order())
    assert len(order) >= len(IMPORTS) > 100
