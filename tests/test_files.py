"""Files that are there whole or not at all."""

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.errors import OutputError
from evaluation.files import (
    atomic_path,
    fingerprint,
    load_json,
    read_json,
    unordered,
    write_json,
    write_jsonl,
)


def write_half(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("half-way")


def test_what_a_killed_writer_left_for_a_day_is_removed(tmp_path: Path) -> None:
    old, fresh = tmp_path / ".result.json.1.tmp", tmp_path / ".result.json.2.tmp"
    for path in (old, fresh):
        path.write_text("half")
    os.utime(old, (time.time() - 90_000,) * 2)
    write_json(tmp_path / "result.json", {})
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", fresh.name}


@pytest.mark.parametrize("what", ["folder", "device"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, what: str) -> None:
    path = tmp_path / "here.json"
    path.mkdir() if what == "folder" else path.symlink_to("/dev/null")
    before = path.lstat()
    with pytest.raises(OutputError, match=r"here\.json: is not a file"):
        write_json(path, {})
    assert os.path.samestat(path.lstat(), before)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("target", [None, "theirs.json", "nowhere.json", "here.json"])
def test_a_file_or_link_stays_until_it_is_replaced_whole(
    tmp_path: Path, target: str | None
) -> None:
    """What a link points to stays as it is."""
    here, theirs = tmp_path / "here.json", tmp_path / "theirs.json"
    theirs.write_text("theirs")
    here.symlink_to(target) if target else here.write_text("old")
    before = {path.name: path.lstat().st_ino for path in tmp_path.iterdir()}
    with pytest.raises(RuntimeError, match="half-way"):
        write_half(here)
    assert {path.name: path.lstat().st_ino for path in tmp_path.iterdir()} == before
    assert target or here.read_text() == "old"
    write_json(here, {"n": 1})
    assert not here.is_symlink()
    assert json.loads(here.read_text()) == {"n": 1}
    assert theirs.read_text() == "theirs"
    assert {path.name for path in tmp_path.iterdir()} == before.keys()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file(tmp_path: Path, number: int) -> None:
    def rows() -> Iterator[int]:
        yield 1
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        write_jsonl(tmp_path / "rows.jsonl", rows())
    assert raised.value.filename == str(tmp_path / "rows.jsonl")
    assert not list(tmp_path.iterdir())


def test_half_of_a_surrogate_pair_is_written_as_json_writes_it(tmp_path: Path) -> None:
    text = "a \ud83d b"
    write_json(tmp_path / "a.json", {"text": text})
    write_jsonl(tmp_path / "a.jsonl", [text])
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"text": text}
    assert json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8")) == text
    assert fingerprint(text) != fingerprint(json.dumps(text)[1:-1])


def test_nan_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())


def test_order_is_a_part_of_a_fingerprint_unless_it_is_taken_out() -> None:
    given = {"b": [2, {"d": 1, "c": 2}], "a": 1}
    same = {"a": 1, "b": [2, {"c": 2, "d": 1}]}
    assert fingerprint(given) != fingerprint(same)
    assert fingerprint(unordered(given)) == fingerprint(unordered(same)) == fingerprint(same)
    assert fingerprint(unordered({"a": [1, 2]})) != fingerprint(unordered({"a": [2, 1]}))
    assert fingerprint({"a": 1}) != fingerprint({"a": "1"})


WRONG = ['{"a": 1, "a": 2}', "[" * 100_000, "{", b"\xff"]


@pytest.mark.parametrize("line", WRONG, ids=range(len(WRONG)))
def test_lines_that_are_no_json(line: str | bytes) -> None:
    """Also a key that stands twice, and numbers that JSON lacks."""
    with pytest.raises(OutputError, match=r"^a: line 3: "):
        read_json(line.encode() if isinstance(line, str) else line, "a: line 3", OutputError)
    assert load_json('{"a": Infinity}')["a"] == float("inf")
    with pytest.raises(ValueError, match="NaN is not a number in JSON"):
        load_json("NaN", finite=True)
