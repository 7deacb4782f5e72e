"""Names say what is in them, one class a name, few called `found` or `one`; files and functions are short."""

import ast
import re
from collections import Counter

from tests.conftest import ROOT

FILES = sorted((ROOT / "evaluation").rglob("*.py"))
VAGUE = {"asked", "found", "known", "made", "one", "own"}
COLUMNS = 110
MOST = 5
"""Uses of such a name in 1,000 lines; well-kept code of the field has 0 to 5."""


def test_class_names_are_unique() -> None:
    names = Counter(
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []


def test_vague_names_are_rare() -> None:
    uses, lines = Counter[str](), 0
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        for node in ast.walk(ast.parse(text)):
            name = getattr(node, "id", None) or getattr(node, "arg", None)
            if name in VAGUE:
                uses[name] += 1
    assert uses.keys() == VAGUE
    assert {name: count for name, count in uses.items() if count * 1000 > MOST * lines} == {}


def test_no_line_is_longer_than_a_screen() -> None:
    rooms = ("evaluation", "demo", "benchmarks", "install", "workflow", "tests")
    paths = [p for room in rooms for end in ("*.py", "*.smk") for p in (ROOT / room).rglob(end)]
    lines = {path: path.read_text(encoding="utf-8").splitlines() for path in paths}
    assert len(paths) > 200
    assert {path for path, own in lines.items() if max(map(len, own), default=0) > COLUMNS} == set()


def test_files_and_functions_are_as_short_as_contributing_says() -> None:
    rule = re.search(
        r"Each file outside tests/ has one purpose and at most "
        r"(\d+) lines. Functions have about ten lines, at most (\d+)",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").replace("\n", " "),
    )
    assert rule is not None
    most_lines, longest = map(int, rule.groups())
    files = [
        p for room in ("evaluation", "demo", "benchmarks") for p in (ROOT / room).rglob("*.py")
    ]
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in files}
    assert [path for path, count in lines.items() if count > most_lines] == []
    functions = [
        (path, node.name, (node.end_lineno or 0) - node.lineno + 1)
        for path in [*files, *(ROOT / "tests").rglob("*.py")]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(functions) > 1000
    assert [function for function in functions if function[2] > longest] == []
