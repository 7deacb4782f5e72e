"""Decides from the text of tests alone what they use of a program, and whether plain data suffice for it.

No program has run yet that could interfere. Tests may need objects, callables, files or the process
itself; then no other process can judge them, and `needs` states why.
"""

import ast
import builtins
import functools
import importlib
import re
from collections.abc import Iterator

from evaluation.verification.sandbox.model import Tests, Use
from evaluation.verification.sandbox.plain_data import PLAIN
from evaluation.verification.sandbox.reading import (
    BUILTINS,
    Reading,
    called,
    defined,
    loaded,
    parsed,
    stored,
)

_OF_ARRAYS = "tolist shape dtype size ndim T all any sum astype hexdigest digest".split()
_OF_DATA = {name for kind in (*PLAIN, ValueError) for name in dir(kind)} - {
    *("maxlen", "default_factory"),  # not sent
    *"append add insert extend update pop popleft appendleft remove discard clear popitem setdefault".split(),
} | {*_OF_ARRAYS}
"""Attributes with which tests look at plain data."""
_MODULES = frozenset(
    """array base64 bisect calendar cmath collections copy datetime decimal fractions functools hashlib
    heapq itertools json math numbers numpy operator random re statistics string struct time uuid
    pathlib textwrap typing unicodedata unittest warnings zoneinfo __future__""".split()
)
"""Modules with which tests look at plain data."""
_POWERS = frozenset(
    """exec eval compile open input globals locals vars dir id callable getattr setattr hasattr delattr
    issubclass __import__ memoryview seed object defaultdict NotImplemented
    SystemExit KeyboardInterrupt GeneratorExit mock patch Mock MagicMock""".split()
)
"""Names and attributes with which tests look at more than values, or change the process."""
_ENDLESS = frozenset("next anext islice takewhile".split())
"""Functions with which tests take a part of an iterator, which may have no end."""
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*")
_STRUCTURED = (ast.With, ast.AsyncWith, ast.AsyncFor, ast.Await, ast.AsyncFunctionDef)
_TYPES = frozenset(n for n in BUILTINS if type(getattr(builtins, n)) is type) | {
    *"Sequence Mapping Set Iterable Sized Collection Container Hashable Number Integral Real".split(),
    *"Decimal Fraction date datetime timedelta deque OrderedDict Counter".split(),
} - {n for n in BUILTINS if n.endswith(("Error", "Exception", "Warning"))}


@functools.lru_cache(maxsize=64)
def use_of(tests: Tests) -> Use:
    """Return what tests use of a program: nothing if they are no valid Python."""
    setup, tree = parsed(tests.setup), parsed("\n".join(tests.asserts) or tests.source)
    try:
        return _Needs(setup, tree, set(defined(parsed(tests.given).body)), tests.entry_point).use()
    except RecursionError:
        return Use([], entry_point=tests.entry_point, needs="they are nested too deeply")


class _Needs(Reading):
    def use(self) -> Use:
        self._classes = {name for name in self._program if self._has_only_methods(name)}
        if "()." in self._entry:  # a method, as `Solution().solve`
            self._classes.add(self._entry.partition("().")[0])
        self._program -= self._classes | {self._entry if "()." in self._entry else ""}
        given = (loaded(ast.walk(call)) for call in self._calls if self._is_asking(call))
        names = set().union(*given) - self._program - self._aliases
        self._given = {name for name in names if not self._origins.get(name, {""}) <= self._classes}
        needs = next(filter(None, map(self._why, self._nodes)), "") or self._of_definitions()
        functions = sorted(self._program)
        modules = sorted(self._modules())
        returns = self._looks_back()
        return Use(
            functions, sorted(self._classes), self._imports, modules, self._entry, returns, needs
        )

    def _why(self, node: ast.AST) -> str:
        if isinstance(node, _STRUCTURED):
            return "they use `with` or `await`"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return self._of_name(node)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Compare):
            return self._of_comparison(node)
        if isinstance(node, ast.BinOp) and self._are_objects([node.left, node.right]):
            return "they calculate with its objects"
        breaks = isinstance(node, ast.For) and any(isinstance(n, ast.Break) for n in ast.walk(node))
        if breaks and self._from(node.iter):  # type: ignore[attr-defined]
            return "they take a part of an iterator"
        return self._of_call(node) if isinstance(node, ast.Call) else ""

    def _of_definitions(self) -> str:
        homes = (
            (m, m if m.startswith("unittest") else m.partition(".")[0]) for m in self._modules()
        )
        if other := [module for module, home in homes if home not in _MODULES]:
            return f"they import `{other[0]}`"
        unused = {n.name for n in self._tests.body if isinstance(n, ast.FunctionDef)} - {"check"}
        lambdas = (n for n in self._tests.body if isinstance(getattr(n, "value", 0), ast.Lambda))
        unused = unused.union(*map(stored, lambdas)) - loaded(self._nodes) - {"_"}
        return f"they define `{min(unused)}` for the program" if unused else ""

    def _of_name(self, node: ast.Name) -> str:
        parent, name = self._parents[node], node.id
        if name in _POWERS - self._bound - self._own - self._program:
            return f"they use `{name}`"
        if name not in self._program | self._aliases or getattr(parent, "func", None) is node:
            return ""
        taker = self._parents[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(taker, ast.Call) and not self._is_asking(taker):
            return ""
        return f"they use `{name}` as a value"

    def _of_attribute(self, node: ast.Attribute) -> str:
        origins = self._from(node.value)
        is_of_program = isinstance(node.value, ast.Name) and node.value.id in origins
        if self._is_instance(node.value):
            return ""
        if (
            node.attr in _POWERS
            or node.attr[:2] == "__"
            or (origins and (is_of_program or node.attr not in _OF_DATA))
        ):
            return f"they use `.{node.attr}`"
        return ""

    def _of_comparison(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        if isinstance(node.ops[0], ast.Is) and not any(map(self._is_single, sides)):
            return "they ask whether two objects are one"
        return "they compare its objects" if self._are_objects(sides) else ""

    def _is_single(self, node: ast.expr) -> bool:
        """Return whether there is only one such object (None, a type), or it is an argument."""
        is_type = isinstance(node, ast.Constant) or called(node) == "type"
        return is_type or getattr(node, "id", "") in BUILTINS | self._given

    def _are_objects(self, parts: list[ast.expr]) -> bool:
        """Return whether all parts are values of the program that are never compared with data."""
        origins = [self._from(part) for part in parts if called(part) not in BUILTINS]
        return len(origins) == len(parts) and all(o and not o & self._data for o in origins)

    def _of_call(self, node: ast.Call) -> str:
        name = called(node)
        is_made = isinstance(node.func, ast.Attribute | ast.Lambda)
        if not is_made and self._from(node.func) - {name}:
            return "they call what it returns"
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        last = name or getattr(node.func, "attr", "")
        if last in _ENDLESS and any(map(self._is_bare, given)):
            return "they take a part of an iterator"
        is_other = bool(given) and loaded(ast.walk(given[-1])) - _TYPES
        if name == "isinstance" and self._from(node) and is_other:
            return "they ask for a type that is not one of plain data"
        if not self._is_asking(node):
            return ""
        parent = self._parents[node]
        if node in getattr(parent, "decorator_list", ()):
            return "they use what it returns as a decorator"
        is_compared = isinstance(parent, ast.Compare)
        if name != self._entry and _CLASS.fullmatch(name) and not is_compared:
            return f"they make objects of `{name}`"
        if any(self._is_no_data(part) for value in given for part in self._parts(value)):
            return "they give it a function or an object"
        if any(not self._from(value) <= self._data for value in given):
            return "they give it its own values"
        return ""

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield a node and those below it, except the arguments of the tests' own calls."""
        yield node
        if not isinstance(node, ast.Call) or self._is_asking(node):
            for child in ast.iter_child_nodes(node):
                yield from self._parts(child)

    def _is_no_data(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = node.value.id
            if home in _MODULES and (home in self._own or home in self._imports):
                return callable(getattr(importlib.import_module(home), node.attr, None))
        if not isinstance(node, ast.Name):
            return isinstance(node, ast.Lambda) or called(node) in self._makers
        if getattr(self._parents[node], "func", None) is node:
            return False
        return node.id in self._objects | (BUILTINS - self._bound - self._program)
