"""Our own signs on terminals whose encoding lacks them: in every message, and in tables, whose columns stay."""

import ast
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.escaping import _SIGNS
from evaluation.exit_codes import prepare_streams
from evaluation.terminal_layout import align, show
from tests.conftest import ROOT
from tests.tables import cases

NO_MESSAGES = ("reading", "verification", "tokenizers", "reporting/pages", "reporting/flips")
"""Packages whose signs are of answers, or of pages, which are UTF-8."""


def terminal(encoding: str, monkeypatch: pytest.MonkeyPatch) -> io.TextIOWrapper:
    """Let standard output have an encoding, as Python opens it."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    prepare_streams()
    return stream


def written(stream: io.TextIOWrapper) -> str:
    return stream.buffer.getvalue().decode(stream.encoding)


@pytest.mark.parametrize(("encoding", "text", "shown"), cases("escaping", "signs"))
def test_messages(encoding: str, text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(encoding, monkeypatch)
    print(text, end="")
    assert written(stream) == shown


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_bytes_of_another_program_can_be_read_back(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that stands in for standard output is read by whoever opened it."""
    stream = terminal(encoding, monkeypatch)
    print("10 ±", end="")
    stream.buffer.write(b" \xff")
    stream.seek(0)
    assert stream.read() == ("10 +/- \\xff" if encoding == "ascii" else "10 ± \\xff")


@pytest.mark.parametrize(
    ("encoding", "mark", "line", "delta"),
    [("ascii", "...", "-", "delta nats"), ("iso-8859-15", "...", "-", "delta nats"), ("utf-8", "…", "─", "Δnats")],
)  # fmt: skip
def test_tables(
    encoding: str, mark: str, line: str, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns are as wide as what is shown in them."""
    stream = terminal(encoding, monkeypatch)
    show(align([["step", "Δnats", "x"], ["a…", "–" if line == "─" else "-", "1"]]))
    head, rule, row = written(stream).splitlines()
    assert head.split("  ") == ["step", delta, "x"]
    assert rule == "  ".join(line * len(name) for name in ("step", delta, "x"))
    assert row.startswith(f"a{mark}".ljust(4) + "  ")
    assert row.index("1") == head.index("x")


def test_a_table_for_a_file_does_not_depend_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [["Δ", "x"], ["–", "1"]]
    expected = align(rows, is_whole=True)
    terminal("ascii", monkeypatch)
    assert align(rows, is_whole=True) == expected
    assert align(rows) != expected


def signs_of(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and characters of the texts in a file, but not of its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (
                (node.lineno, char)
                for char in node.value
                if not char.isascii() and char.isprintable()
            )


def test_every_sign_of_a_message_can_be_spelled() -> None:
    package = ROOT / "evaluation"
    folders = [package / name for name in NO_MESSAGES]
    files = [path for path in package.rglob("*.py") if not any(map(path.is_relative_to, folders))]
    lacking = [
        f"{path.relative_to(ROOT)}:{line} {char}"
        for path in files
        for line, char in signs_of(path)
        if char not in _SIGNS
    ]
    assert len(files) > 250
    assert lacking == []
