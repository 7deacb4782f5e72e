"""Text that comes in from files that a user names, and text that goes out to tables, pages and terminals."""

import csv
import gzip
import os
from pathlib import Path

import pytest

from evaluation.errors import ResultsError
from evaluation.escaping import csv_cell, latex, printable, printable_lines
from evaluation.exit_codes import report
from evaluation.input_files import read_json, read_lines
from evaluation.json_text import load_json
from evaluation.reporting.pages.page import ENVIRONMENT
from evaluation.reporting.terminal import as_table
from evaluation.results.columns import Column, write_csv
from evaluation.wording import kind_of, near_path
from tests.tables import cases


@pytest.mark.parametrize(("value", "cell"), cases("escaping", "cells"))
def test_cells(value: object, cell: object) -> None:
    assert csv_cell(value) == cell


def test_a_table_keeps_numbers_and_tames_text(tmp_path: Path) -> None:
    columns = [Column(name, "string") for name in ("item", "delta")]
    write_csv(tmp_path / "a.csv", columns, [{"item": "=1,2", "delta": -0.25}, {"item": "b"}])
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["item", "delta"], ["'=1,2", "-0.25"], ["b", ""]]


@pytest.mark.parametrize(("text", "tex"), cases("escaping", "tex"))
def test_tex(text: str, tex: str) -> None:
    assert latex(text) == tex


def test_terminals_and_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert as_table([["a\x1b[2J", "b"], ["1.50", "c"]]).splitlines()[::2] == [
        "a\\x1b[2J    b",
        "1.50        c",
    ]
    report("two\nlines, and \x1b[2J")
    assert capsys.readouterr().err == "error: two\nlines, and \\x1b[2J\n"
    assert (kind_of(None), kind_of({})) == ("null", "keys and values")
    page = ENVIRONMENT.from_string("{{ text }}").render(text="a\x1bb\nc")
    assert page == "a\\x1bb\nc"
    assert printable("a b") == printable_lines("a b") == "a b"


PACKED = gzip.compress(os.urandom(500))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "no such file; give a list", id="nothing"),
        pytest.param(PACKED[:-9], "damaged gzip data", id="cut gzip"),
    ],
)
def test_what_is_no_file_of_lines(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "a"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ResultsError, match=words):
        list(read_lines(path, ResultsError, "a list"))


WRONG = [
    ('{"a": 1, "a": 2}', "the key 'a' appears twice"),
    ('[{"b": {"a": 1, "b": 2, "a": 3}}]', "the key 'a' appears twice"),
    ("[" * 100_000, "nested too deeply"),
    ("{", "not valid JSON"),
    ("9" * 5000, "not valid JSON"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
def test_lines_that_are_no_json(text: str, words: str) -> None:
    with pytest.raises(ResultsError, match=f"^a: line 3: .*{words}"):
        read_json(text.encode(), "a: line 3", ResultsError)


def test_json_of_other_numbers() -> None:
    assert load_json('{"a": Infinity}')["a"] == float("inf")
    with pytest.raises(ValueError, match="NaN is not a number in JSON"):
        load_json("NaN", finite=True)


def test_a_missing_file_is_no_folder(tmp_path: Path) -> None:
    """Nor is a missing folder a file, however similar its name."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profile.yml").touch()
    assert near_path(tmp_path / "profile.yaml", Path.is_file) == " (did you mean profile.yml?)"
    assert near_path(tmp_path / "profile", Path.is_dir) == " (did you mean profiles?)"
    (tmp_path / "profile.yml").unlink()
    assert near_path(tmp_path / "profile.yaml", Path.is_file) == ""
