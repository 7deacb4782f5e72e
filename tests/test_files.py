"""Files that are there whole or not at all."""

import errno
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from evaluation.errors import OutputError
from evaluation.files import (
    atomic_path,
    fingerprint,
    unordered,
    write_json,
    write_jsonl,
    write_parquet,
    write_text,
)


def write_half(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("half-way")


def test_what_a_killed_writer_left_is_removed_and_a_living_ones_is_not(tmp_path: Path) -> None:
    path, host = tmp_path / "result.json", socket.gethostname()
    dead, alive = f".result.json.{host}+4194305+00.tmp", f".result.json.{host}+{os.getpid()}+00.tmp"
    fresh, far = f".result.json.{host}+4194305+01.tmp", ".result.json.far+1+00.tmp"
    for name in (dead, alive, fresh, far):
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (time.time() - 3600,) * 2)
    os.utime(tmp_path / fresh)
    write_json(path, {})
    assert {file.name for file in tmp_path.iterdir()} == {"result.json", alive, fresh, far}
    os.utime(tmp_path / far, (time.time() - 90_000,) * 2)
    write_json(path, {})
    assert not (tmp_path / far).exists()


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


NAMES = ["a+b.json", "[a]*?.json", " ", "-", "a\nb", ".hidden"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_every_kind(tmp_path: Path, name: str) -> None:
    """What a killed writer left of each goes."""
    path = tmp_path / "[folder]*" / name
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
        hidden = temporary.name
    left = path.parent / hidden.replace(f"+{os.getpid()}+", "+4194305+")
    left.write_text("half")
    os.utime(left, (time.time() - 3600,) * 2)
    write_text(path, "again")
    assert path.read_text() == "again"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o002])
def test_files_follow_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_json(tmp_path / "a.json", {})
        write_parquet(tmp_path / "a.parquet", pa.table({"nats": [1.5]}))
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o666 & ~mask}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file(tmp_path: Path, number: int) -> None:
    def rows() -> Iterator[int]:
        yield 1
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        write_jsonl(tmp_path / "rows.jsonl", rows())
    assert raised.value.filename == str(tmp_path / "rows.jsonl")
    assert not list(tmp_path.iterdir())


def test_folders_that_cannot_be_written_to_name_the_file(tmp_path: Path) -> None:
    """/sys takes no files, whoever asks; a file is no folder."""
    with pytest.raises(OSError, match=r"(denied|permitted|Read-only).*/sys/result.json"):
        write_text(Path("/sys/result.json"), "x")
    (tmp_path / "file").touch()
    for name in ("file/result.json", "file/deeper/result.json"):
        with pytest.raises(OSError, match=f"'{tmp_path}/file"):
            write_text(tmp_path / name, "x")


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
