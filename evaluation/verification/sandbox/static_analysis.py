"""Finds out what tests use, from their text alone: no program has run yet that could interfere."""

import ast
import builtins
import sys
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

_BUILTINS = frozenset(dir(builtins))
_DATA: tuple[object, ...] = (
    *(0, 0.0, 1j, "", b"", bytearray(), [], (), {}, set(), frozenset(), range(0), deque()),
    *(Counter(), OrderedDict(), defaultdict(), array("d"), Decimal(), Fraction(), Exception()),
    *(datetime.min, timedelta()),
)
_OF_ARRAYS = {"tolist", "shape", "dtype", "size", "ndim", "T", "all", "any", "sum", "astype"}
_NOT_SENT = {"maxlen", "default_factory"}
_OF_DATA = {name for value in _DATA for name in dir(value)} - _NOT_SENT | _OF_ARRAYS
"""Attributes of plain data."""
_LOOKING_INSIDE = {
    *"abc asyncio concurrent contextlib dataclasses gc inspect pickle threading types typing".split(),
    *"unittest weakref".split(),
}
"""Modules with which tests inspect more than values, or affect the program's process."""
_OF_THE_PROCESS = {
    *"stdout stderr stdin redirect_stdout redirect_stderr patch seed environ modules".split(),
    *"setrecursionlimit setswitchinterval getrefcount globals locals vars exec eval".split(),
}
_OF_OBJECTS = {*"isinstance issubclass hasattr getattr setattr delattr type dir id".split()}

_NAMED = {"np": "numpy", "numpy": "numpy"}


@dataclass(frozen=True)
class TestsAnalysis:
    """`names` are the program's names; `objects` is why not only values are tested (empty if only these).

    `modules` are those, by name, that the tests use without importing them, as the program does.
    """

    names: tuple[str, ...]
    modules: dict[str, str]
    objects: str


def analyse(setup: ast.Module, tests: ast.Module, entry_point: str) -> TestsAnalysis:
    """Find out which names tests use, and whether they test objects.

    Args:
        setup: The tests' setup, parsed.
        tests: All tests, parsed.
        entry_point: Name that `check` is called with; empty if the tests call the program by name.

    Returns:
        Names of the program, modules used without an import, and why objects are tested.
    """
    trees = (setup, tests)
    own = {name for tree in trees for name in _defined(tree)}
    used = {name for tree in trees for name in _loaded(tree)} - own
    names = used - _BUILTINS
    if entry_point:
        names.add(entry_point)
    else:
        names |= {n for node in tests.body if not _loaded(node) - _BUILTINS for n in _called(node)}
    bound = {name for tree in trees for name in _bound(tree)}
    other = bound | {name for tree in trees for name in _called(tree)}
    modules = {name: _NAMED.get(name, name) for name in names - other if _is_module(name)}
    names -= modules.keys()
    own |= modules.keys()
    reader = _Reader(names - bound, own | _made_by(own, trees), trees)
    return TestsAnalysis(tuple(sorted(names)), modules, reader.objects(setup, tests))


def _is_module(name: str) -> bool:
    return name in sys.stdlib_module_names or name in _NAMED


def _loaded(tree: ast.AST) -> set[str]:
    names = (
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )
    return set(names) - {"__name__", "__file__", "__builtins__", "__debug__"}


def _bound(tree: ast.AST) -> Iterator[str]:
    """Yield the variables and parameters of the tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _made_by(own: set[str], trees: tuple[ast.Module, ...]) -> set[str]:
    """Return variables whose values the tests make without the program, such as a random generator."""
    made: set[str] = set()
    others: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            (others if _loaded(node.value) - _BUILTINS - own else made).update(names)
    return made - others


def _functions(tree: ast.AST) -> set[str]:
    """Return the names that are called, or passed as arguments of a call."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [keyword.value for keyword in node.keywords]
            found |= {n.id for n in (node.func, *node.args, *given) if isinstance(n, ast.Name)}
    return found


def _given(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions that the tests define."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name != "check":
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            yield from (n.id for n in node.targets if isinstance(n, ast.Name) and n.id != "_")


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the tests import or define; the program cannot redefine them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((name.asname or name.name).partition(".")[0] for name in node.names)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


class _Reader:
    def __init__(self, names: set[str], own: set[str], trees: tuple[ast.Module, ...]) -> None:
        self._names, self._own = names, own
        self._classes = {name for name in names if name[:1].isupper()}
        # and variables for instances of them: objects of the program
        for node in (node for tree in trees for node in ast.walk(tree)):
            if isinstance(node, ast.Assign) and _loaded(node.value) & self._classes:
                self._classes |= {n.id for n in node.targets if isinstance(n, ast.Name)}

    def objects(self, setup: ast.Module, tests: ast.Module) -> str:
        for tree in (setup, tests):
            found = next((why for node in ast.walk(tree) if (why := self._why(node))), "")
            if found:
                return found
        if given := set(_given(tests)) - _loaded(tests):
            return f"they define `{min(given)}` for the program"
        if read := (_loaded(tests) & self._names) - _functions(tests):
            return f"they read its variable `{min(read)}`"
        return ""

    def _why(self, node: ast.AST) -> str:
        """Return why a node of the tests is about more than plain data; empty if it is not."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._of_import(node)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.ClassDef):
            return "they define a class"
        if isinstance(node, ast.With | ast.AsyncWith | ast.Await):
            return "they use `with`, or wait for something"
        if isinstance(node, ast.ExceptHandler) and node.type and self._names & _loaded(node.type):
            return "they catch an exception of the program's own"
        if isinstance(node, ast.Name) and node.id in _OF_THE_PROCESS:
            return f"they use `{node.id}`"
        return self._of_expression(node)

    def _of_import(self, node: ast.Import | ast.ImportFrom) -> str:
        modules = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [n.name for n in node.names]
        )
        inside = [m for m in modules if m.partition(".")[0] in _LOOKING_INSIDE]
        return f"they import `{inside[0]}`" if inside else ""

    def _of_attribute(self, node: ast.Attribute) -> str:
        base: ast.AST = node
        while isinstance(base, ast.Attribute):
            base = base.value
        is_of_tests = isinstance(base, ast.Name) and base.id in self._own
        if node.attr in _OF_THE_PROCESS or not (is_of_tests or node.attr in _OF_DATA):
            return f"they use `.{node.attr}`"
        if isinstance(base, ast.Name) and base.id in self._names:
            return f"they use `{base.id}.{node.attr}`"
        return ""

    def _of_expression(self, node: ast.AST) -> str:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = {arg.id for arg in node.args if isinstance(arg, ast.Name)}
            if node.func.id in _OF_OBJECTS and given & self._names:
                return f"they ask for `{node.func.id}`"
            if node.func.id in ("isinstance", "issubclass") and _loaded(node.args[-1]) - _BUILTINS:
                return f"they ask for `{node.func.id}`"
            if node.func.id in self._names and any(map(self._is_operation, node.args)):
                return "they give it what its own objects make of an operation"
        if isinstance(node, ast.Compare):
            return self._of_comparison(node, [node.left, *node.comparators])
        if isinstance(node, ast.BinOp) and self._is_operation(node):
            return "they calculate with objects of the program's own"
        return ""

    def _is_operation(self, node: ast.expr) -> bool:
        """Return whether an operand is an object: its name, or that of its class, is capitalized."""
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        else:
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        return any(_loaded(getattr(s, "func", s)) & self._classes for s in sides)

    def _of_comparison(self, node: ast.Compare, sides: list[ast.expr]) -> str:
        plain = ast.Constant | ast.Compare | ast.UnaryOp
        known = [side for side in sides if isinstance(side, plain) or _loaded(side) & _BUILTINS]
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and not known:
            return "they ask whether two objects are one"
        are_both = sum(bool(_loaded(side) & self._classes) for side in sides) > 1
        if are_both or (not isinstance(node.ops[0], ast.Eq) and self._is_operation(node)):
            return "they compare objects of the program's own"
        return ""
