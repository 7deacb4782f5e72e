"""Text that comes in from files that a user names, and text that goes out to tables, pages and terminals."""

import csv
import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation import input_files
from evaluation.errors import ResultsError
from evaluation.escaping import csv_cell, latex, printable, printable_lines
from evaluation.exit_codes import report
from evaluation.input_files import read_json, read_lines
from evaluation.json_text import load_json
from evaluation.reporting.pages.page import ENVIRONMENT
from evaluation.results.columns import Column, write_csv
from evaluation.terminal_layout import align
from evaluation.wording import kind_of, near_path
from tests.tables import cases
from tests.test_files import bound_socket


@pytest.mark.parametrize(("value", "cell"), cases("escaping", "cells"))
def test_cells(value: object, cell: object) -> None:
    assert csv_cell(value) == cell


def test_a_table_keeps_numbers_and_tames_text(tmp_path: Path) -> None:
    columns = [Column(name, "string", "x") for name in ("item", "delta")]
    write_csv(tmp_path / "a.csv", columns, [{"item": "=1,2", "delta": -0.25}, {"item": "b"}])
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["item", "delta"], ["'=1,2", "-0.25"], ["b", ""]]


@pytest.mark.parametrize(("text", "tex"), cases("escaping", "tex"))
def test_tex(text: str, tex: str) -> None:
    assert latex(text) == tex


def test_terminals_and_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert align([["a\x1b[2J", "b"]]).splitlines()[0] == "a\\x1b[2J  b"
    report("x" * 20_000 + "/" + "y" * 300)
    assert capsys.readouterr().err == f"error: {'x' * 100}… (20,000 characters)/{'y' * 300}\n"
    report("two\nlines, and \x1b[2J")
    assert capsys.readouterr().err == "error: two\nlines, and \\x1b[2J\n"
    assert (kind_of(None), kind_of({})) == ("null", "keys and values")
    page = ENVIRONMENT.from_string("{{ text }}").render(text="a\x1bb\nc")
    assert page == "a\\x1bb\nc"
    assert printable("a b") == printable_lines("a b") == "a b"


def read(path: Path) -> list[bytes]:
    return [line for _, line in read_lines(path, ResultsError, "a list")]


def holds(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


NO_LINES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe that nobody writes to": (os.mkfifo, "it is a pipe, and nobody writes to it"),
    "a socket": (bound_socket, "it is a socket, not a file"),
    "an endless device": (lambda path: path.symlink_to("/dev/zero"), "line 1 has more than"),
    "a folder": (Path.mkdir, "Is a directory"),
    "nothing": (lambda path: None, "no such file; give a list"),
    "a long line": (holds(b"x" * 2000), "line 1 has more than .* give a list"),
    "much in little": (holds(gzip.compress(b"x\n" * 3000)), "more than .* split the file"),
    "cut gzip": (holds(gzip.compress(os.urandom(500))[:-9]), "damaged gzip data"),
}


@pytest.mark.parametrize("name", NO_LINES)
def test_what_is_no_file_of_lines(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in (("PATIENCE", 0.1), ("LONGEST_LINE", 1000), ("LARGEST", 5000)):
        monkeypatch.setattr(input_files, limit, value)
    make, words = NO_LINES[name]
    make(tmp_path / "a")
    with pytest.raises(ResultsError, match=words):
        read(tmp_path / "a")


def test_a_pipe_that_somebody_writes_to(tmp_path: Path) -> None:
    path = tmp_path / "a"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(b"one\ntwo"),))
    writer.start()
    assert read(path) == [b"one\n", b"two"]
    writer.join()


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


def test_json_of_other_encodings_and_numbers() -> None:
    with pytest.raises(ResultsError, match="not UTF-8 text"):
        read_json('{"a": 1}'.encode("utf-16"), "a", ResultsError)
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
