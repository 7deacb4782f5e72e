"""Reads the text of tests: what they ask of a program, and which of their values come from it."""

import ast
import builtins
import importlib
import sys
from collections.abc import Iterable, Iterator

BUILTINS = frozenset(dir(builtins))
_STANDARD = "math collections datetime decimal fractions functools itertools copy".split()
"""Modules of which tests may use members without an import, as the program imports them."""
_OF_MODULES = frozenset("__name__ __file__ __builtins__ __debug__".split())
_BINDING = (*(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.comprehension),)
_NUMPY = {"np": "numpy", "numpy": "numpy"}
_BASES = frozenset("dict list tuple set frozenset str int float bytes".split())
"""Types of which subclasses of the tests are plain data."""


def parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def defined(body: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that statements define: functions, classes, imports and variables."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Assign):
            yield from (n.id for n in node.targets if isinstance(n, ast.Name))


def called(node: ast.AST) -> str:
    """Return the name that a call calls; empty for any other node."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def stored(node: ast.AST) -> set[str]:
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what a node binds, and to which value or to whose items."""
    value = getattr(node, "value", None) or getattr(node, "iter", None)
    if isinstance(value, ast.expr) and isinstance(node, _BINDING):
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            yield from _matched(target, value)


def _matched(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the parts of a target with those of the value, where `zip` or a tuple tells them."""
    parts = value.args if isinstance(value, ast.Call) and called(value) == "zip" else []
    parts = value.elts if isinstance(value, ast.Tuple) else parts
    if isinstance(target, ast.Tuple) and len(parts) == len(target.elts):
        for inner, part in zip(target.elts, parts, strict=True):
            yield from _matched(inner, part)
    else:
        yield target, value


class Reading:
    """The tests' names, and where their values come from.

    Args:
        given: Names of the code that the program had to complete.
        entry_point: Name that `check` is called with; empty if tests call the program by name.
    """

    def __init__(
        self, setup: ast.Module, tests: ast.Module, given: set[str], entry_point: str
    ) -> None:
        self._entry, self._tests = entry_point, tests
        self._nodes = [node for tree in (setup, tests) for node in ast.walk(tree)]
        self._parents = {c: node for node in self._nodes for c in ast.iter_child_nodes(node)}
        self._calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        self._called = {entry_point, *map(called, self._calls)}
        self._defs = {n.name: n for n in self._nodes if isinstance(n, ast.FunctionDef)}
        self._own = given - {entry_point} | set(defined(self._nodes))
        self._bound = {n.arg for n in self._nodes if isinstance(n, ast.arg)} | {
            n.id for n in self._nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self._program = self._program_names()
        self._aliases = set(self._parameters())
        self._makers = set(self._classes_of_tests())
        self._makers |= {n for n, d in self._defs.items() if loaded(ast.walk(d)) & self._makers}
        self._objects = {*self._defs, *self._makers}
        for target, value in (pair for node in self._nodes for pair in _bindings(node)):
            if isinstance(value, ast.Lambda) or called(value) in self._makers:
                self._objects |= stored(target)
        self._origins: dict[str, set[str]] = {}
        for _ in range(3):  # through variables of variables
            self._follow_bindings()
        self._classes, self._given = set[str](), set[str]()
        self._data = {name for name in self._program | self._aliases if self._is_data(name)}
        self._imports = dict(self._unimported())
        self._program -= self._imports.keys()

    def _classes_of_tests(self) -> Iterator[str]:
        """Yield the tests' classes, except those that are plain data with other methods."""
        for node in self._nodes:
            if isinstance(node, ast.ClassDef) and not (node.bases and loaded(node.bases) <= _BASES):
                yield node.name

    def _program_names(self) -> set[str]:
        names = loaded(self._nodes) - BUILTINS - self._own - self._bound - _OF_MODULES
        if self._entry:
            return names | {self._entry}
        for node in self._tests.body:  # such as `sum`, where it is all that a test calls
            calls = [name for n in ast.walk(node) if (name := called(n))]
            if calls and not loaded(ast.walk(node)) - BUILTINS:
                names.add(calls[0])
        return names

    def _parameters(self) -> Iterator[str]:
        """Yield the parameters of the tests' own functions that are functions of the program."""
        if self._entry and "check" in self._defs:
            yield from (a.arg for a in self._defs["check"].args.args[:1])
        for call in self._calls:
            if (name := called(call)) in self._defs:
                for parameter, value in zip(self._defs[name].args.args, call.args, strict=False):
                    if isinstance(value, ast.Name) and value.id in self._program:
                        yield parameter.arg

    def _follow_bindings(self) -> None:
        """Find variables that hold values of the program, with the functions they come from."""
        for node in self._nodes:
            for target, value in _bindings(node):
                names = stored(target) - self._program - self._aliases
                if origins := self._from(value):
                    for name in names:
                        self._origins.setdefault(name, set()).update(origins)

    def _from(self, node: ast.AST) -> set[str]:
        """Return the functions of the program from which a value comes."""
        names = loaded(ast.walk(node))
        of_variables = (self._origins[name] for name in names & self._origins.keys())
        return (names & (self._program | self._aliases)).union(*of_variables)

    def _is_data(self, name: str) -> bool:
        """Return whether a result of the function is compared with what is none of the program's."""
        compared = (n for n in self._nodes if isinstance(n, ast.Compare) and len(n.ops) == 1)
        return any(
            called(side) == name and not self._from(other)
            for node in compared
            for side, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left))
        )

    def _unimported(self) -> Iterator[tuple[str, list[str]]]:
        """Yield modules and their members that the tests use without importing them."""
        for name in self._program - self._data - {self._entry}:
            if name in _NUMPY or (name in sys.stdlib_module_names and name not in self._called):
                yield name, [_NUMPY.get(name, name), ""]
                continue
            for home in _STANDARD:
                if hasattr(importlib.import_module(home), name):
                    yield name, [home, name]

    def _modules(self) -> Iterator[str]:
        for node in self._nodes:
            if isinstance(node, ast.ImportFrom):
                yield node.module or ""
            elif isinstance(node, ast.Import):
                yield from (name.name for name in node.names)

    def _has_only_methods(self, name: str) -> bool:
        """Return whether a class is used only as `x = C()`, and `x` only as `x.method(…)`."""
        uses = [n for n in self._nodes if isinstance(n, ast.Name) and n.id == name]
        made = [p for n in uses if isinstance(p := self._parents[n], ast.Call) and p.func is n]
        given = [self._parents[call] for call in made if not (call.args or call.keywords)]
        if len(given) != len(uses) or not all(isinstance(n, ast.Assign) for n in given):
            return False
        variables = {name for node in given for name in stored(node)}
        return len(variables) == 1 and all(
            isinstance(self._parents[n], ast.Attribute)
            and isinstance(self._parents[self._parents[n]], ast.Call)
            for n in self._nodes
            if isinstance(n, ast.Name) and n.id in variables and isinstance(n.ctx, ast.Load)
        )

    def _looks_back(self) -> bool:
        """Return whether they look at an argument after the call, as after sorting in place."""
        for node in (n for n in self._nodes if isinstance(n, ast.Expr | ast.Compare | ast.Lambda)):
            names = loaded(ast.walk(node))
            if not names & self._given:
                continue
            if isinstance(node, ast.Expr | ast.Lambda):
                if self._is_asking(getattr(node, "value", node)) or isinstance(node, ast.Lambda):
                    return True
            elif (
                isinstance(node.ops[0], ast.Is)
                or names & (self._program | self._aliases | self._origins.keys()) <= self._given
            ):
                return True
        return False

    def _is_asking(self, node: ast.AST) -> bool:
        """Return whether a node calls a function of the program, or a method of its instance."""
        if called(node) in self._program | self._aliases:
            return True
        function = getattr(node, "func", None)
        return isinstance(function, ast.Attribute) and self._is_instance(function.value)

    def _is_instance(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self._origins.get(node.id, {""}) <= self._classes

    def _is_bare(self, node: ast.AST) -> bool:
        return self._is_asking(node) or getattr(node, "id", "") in self._origins
