"""Names say what is in them: one class a name, and few variables that are called `found` or `one`."""

import ast
from collections import Counter

from tests.conftest import ROOT

FILES = sorted((ROOT / "evaluation").rglob("*.py"))
VAGUE = {"asked", "found", "known", "made", "one", "own"}
MOST = 5
"""Uses of such a name in 1,000 lines; well-kept code of the field has 0 to 5."""


def test_class_names_are_unique() -> None:
    names = Counter(
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 300
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
