"""Text from data in tables, pages and terminals: one way of writing it for each."""

import csv
from pathlib import Path

import pytest

from evaluation.escaping import csv_cell, latex, printable, printable_lines
from evaluation.exit_codes import report
from evaluation.reporting.pages.page import ENVIRONMENT
from evaluation.results.columns import Column, write_csv
from evaluation.terminal_layout import align
from evaluation.wording import kind_of

CELLS: list[tuple[object, object]] = [
    ("level 5", "level 5"),
    ("=1+1", "'=1+1"),
    ("@SUM(1)", "'@SUM(1)"),
    ("+1", "'+1"),
    ("-x", "'-x"),
    (" =1", "' =1"),
    ("a\x1b[31mb", "a\\x1b[31mb"),
    ("a\nb", "a\\nb"),
    ("\t=1", "\\t=1"),
    ("a\u202eb", "a\\u202eb"),
    ("Größe 😀", "Größe 😀"),
    (-0.5, -0.5),
    (None, None),
    (True, True),
]


@pytest.mark.parametrize(("value", "cell"), CELLS)
def test_cells(value: object, cell: object) -> None:
    assert csv_cell(value) == cell


def test_a_table_keeps_numbers_and_tames_text(tmp_path: Path) -> None:
    columns = [Column(name, "string", "x") for name in ("item", "delta")]
    write_csv(tmp_path / "a.csv", columns, [{"item": "=1,2", "delta": -0.25}, {"item": "b"}])
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["item", "delta"], ["'=1,2", "-0.25"], ["b", ""]]


TEX = {
    "a^b": r"a\textasciicircum{}b",
    "a~b": r"a\textasciitilde{}b",
    "a_b&c": r"a\_b\&c",
    "50 % of $x#": r"50 \% of \$x\#",
    "\\input{x}": r"\textbackslash{}input\{x\}",
    "a\x1bb": r"a\textbackslash{}x1bb",
    "<1|2>": r"\textless{}1\textbar{}2\textgreater{}",
}


@pytest.mark.parametrize("text", TEX)
def test_tex(text: str) -> None:
    assert latex(text) == TEX[text]


def test_terminals_and_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert align([["a\x1b[2J", "b"]]).splitlines()[0] == "a\\x1b[2J  b"
    report("x" * 20_000 + "/" + "y" * 300)
    assert capsys.readouterr().err == f"error: {'x' * 100}… (20,000 characters)/{'y' * 300}\n"
    report("two\nlines, and \x1b[2J")
    assert capsys.readouterr().err == "error: two\nlines, and \\x1b[2J\n"
    assert kind_of(None) == "null"
    assert kind_of({}) == "keys and values"
    page = ENVIRONMENT.from_string("{{ text }}").render(text="a\x1bb\nc")
    assert page == "a\\x1bb\nc"
    assert printable("a b") == printable_lines("a b") == "a b"
