"""Files that a user names: what is no file of lines is told, and nothing is waited for or read for ever."""

import gzip
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation import input_files
from evaluation.errors import ResultsError
from evaluation.input_files import read_json, read_lines
from evaluation.json_text import load_json


def read(path: Path) -> list[bytes]:
    return [line for _, line in read_lines(path, ResultsError, "a list")]


def silent_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "a")
    return folder / "a"


def listening(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(folder / "a"))
    return folder / "a"


def long_line(folder: Path) -> Path:
    (folder / "a").write_bytes(b"x" * 2000)
    return folder / "a"


def packed(folder: Path) -> Path:
    (folder / "a").write_bytes(gzip.compress(b"x\n" * 3000))
    return folder / "a"


def cut(folder: Path) -> Path:
    (folder / "a").write_bytes(gzip.compress(os.urandom(500))[:-9])
    return folder / "a"


NO_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a pipe that nobody writes to": (silent_pipe, "it is a pipe, and nobody writes to it"),
    "a socket": (listening, "it is a socket, not a file"),
    "an endless device": (lambda _: Path("/dev/zero"), "/dev/zero: line 1 has more than"),
    "a long line": (long_line, "line 1 has more than .* give a list"),
    "much in little": (packed, "more than .* split the file"),
    "cut gzip": (cut, "damaged gzip data"),
    "a folder": (lambda folder: folder, "Is a directory"),
    "nothing": (lambda folder: folder / "none", "no such file; give a list"),
}


@pytest.mark.parametrize("name", NO_FILES)
def test_what_is_no_file_of_lines(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_files, "PATIENCE", 0.1)
    monkeypatch.setattr(input_files, "LONGEST_LINE", 1000)
    monkeypatch.setattr(input_files, "LARGEST", 5000)
    make, words = NO_FILES[name]
    with pytest.raises(ResultsError, match=words):
        read(make(tmp_path))


def test_a_pipe_that_somebody_writes_to(tmp_path: Path) -> None:
    path = silent_pipe(tmp_path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(b"one\ntwo"),))
    writer.start()
    assert read(path) == [b"one\n", b"two"]
    writer.join()


WRONG = {
    '{"a": 1, "a": 2}': "the key 'a' is there twice",
    '[{"b": {"a": 1, "b": 2, "a": 3}}]': "the key 'a' is there twice",
    "[" * 100_000: "nested too deeply",
    "{": "line 3: not valid JSON",
    "9" * 5000: "line 3: not valid JSON",
}


@pytest.mark.parametrize("text", WRONG, ids=WRONG.values())
def test_lines_that_are_no_json(text: str) -> None:
    with pytest.raises(
        ResultsError, match=rf"^a: line 3: .*{WRONG[text].removeprefix('line 3: ')}"
    ):
        read_json(text.encode(), "a: line 3", ResultsError)


def test_json_of_other_encodings_and_numbers() -> None:
    with pytest.raises(ResultsError, match="not UTF-8 text"):
        read_json('{"a": 1}'.encode("utf-16"), "a", ResultsError)
    assert load_json('{"a": Infinity}')["a"] == float("inf")
    with pytest.raises(ValueError, match="NaN is no number of JSON"):
        load_json("NaN", finite=True)
