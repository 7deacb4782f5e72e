"""Errors that docstrings name can be raised: by the function, or by what it calls, followed by name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.conftest import ROOT

BY_PYTHON = {"MemoryError", "RecursionError"}
"""Errors that no `raise` statement names."""


class Names:
    """What each function or class of a package raises and mentions, by its bare name."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.mentioned: dict[str, set[str]] = defaultdict(set)
        self.bases: dict[str, set[str]] = {}
        self.promised: list[tuple[str, str, str]] = []
        for path, source in sources.items():
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ClassDef):
                    self.bases[node.name] = {
                        ast.unparse(base).split(".")[-1] for base in node.bases
                    }
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    self._read(path, node)

    def _read(self, path: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self.mentioned[node.name].add(part.id)
            elif isinstance(part, ast.Attribute):
                self.mentioned[node.name].add(part.attr)
        section = (ast.get_docstring(node) or "").partition("Raises:\n")[2]
        for error in re.findall(r"^ {4}(\w+):", section, re.MULTILINE):
            self.promised.append((path, node.name, error))

    def reached(self, function: str) -> set[str]:
        """All names that a function or anything it calls mentions."""
        seen, todo = {function}, [function]
        while todo:
            new = self.mentioned.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    def kinds(self, error: str) -> set[str]:
        """An error's class and its subclasses."""
        found = {error}
        while more := {name for name, bases in self.bases.items() if bases & found} - found:
            found |= more
        return found

    def never_raised(self) -> Iterator[tuple[str, str, str]]:
        for path, function, error in self.promised:
            if error not in BY_PYTHON and not self.kinds(error) & self.reached(function):
                yield path, function, error


def test_errors_that_docstrings_name_are_raised() -> None:
    files = (ROOT / "evaluation").rglob("*.py")
    names = Names({str(path.relative_to(ROOT)): path.read_text() for path in files})
    assert len(names.promised) > 200
    assert [*names.never_raised()] == []


def test_an_error_that_nothing_raises_is_noticed() -> None:
    source = (
        '"""Doc."""\ndef f():\n    """Do.\n\n    Raises:\n        KeyError: Never.\n    """\n    '
        "g()\ndef g():\n    return 1\n"
    )
    assert [*Names({"a.py": source}).never_raised()] == [("a.py", "f", "KeyError")]
