"""A checkpoint is its bytes: neither its times, nor its place, nor samples of it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import xxhash

from evaluation.checkpoints import contents
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import IncompleteCheckpoint
from evaluation.files import write_text
from tests.checkpoints.damage import norm
from tests.checkpoints.nanotron import llama, make_checkpoint, rewrite
from tests.checkpoints.test_state import rewrite as rewrite_in_place
from tests.checkpoints.test_state import shard


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_checkpoint(tmp_path / "10", llama())
    return tmp_path / "10"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read completely; files count as settled at once."""
    names: list[str] = []
    digest = contents._digest

    def noting(path: Path, start: int) -> bytes:
        names.append(path.name)
        return digest(path, start)

    monkeypatch.setattr(contents, "_digest", noting)
    monkeypatch.setattr(contents, "_SETTLED_SECONDS", -1.0)
    return names


def identity(folder: Path, results: Path | None = None) -> str:
    return Contents(results).identity(open_checkpoint(folder))


def touch(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.touch()


SAME: dict[str, Callable[[Path], object]] = {
    "touched": touch,
    "moved": lambda f: f.rename(f.with_name("20")) and f.symlink_to(f.with_name("20")),
    "copied": lambda f: shutil.copytree(f, f.with_name("20")) and f.rename(f.with_name("30"))
    and f.with_name("20").rename(f),
    "optimizer": lambda f: write_text(f / "optimizer/a", "1"),
    "mode": lambda f: norm(f).chmod(0o400),
}  # fmt: skip
OTHER: dict[str, Callable[[Path], object]] = {
    "a bit, all times kept": lambda f: rewrite_in_place(shard(f), after=0),
    "a tensor": lambda f: rewrite(norm(f), torch.zeros(32)),
    "a file": lambda f: norm(f).unlink(),
    "a configuration": lambda f: write_text(f / "config.yaml", (f / "config.yaml").read_text() + "a: 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("change", [*SAME, *OTHER])
@pytest.mark.usefixtures("read")
def test_what_it_depends_on(folder: Path, tmp_path: Path, change: str) -> None:
    """Remembered hashes change nothing about it."""
    before = identity(folder)
    assert identity(folder, tmp_path / "results") == before
    {**SAME, **OTHER}[change](folder)
    assert (identity(folder, tmp_path / "results") == before) == (change in SAME)
    assert (identity(folder) == before) == (change in SAME)


def test_only_what_may_have_changed_is_read_again(
    folder: Path, tmp_path: Path, read: list[str]
) -> None:
    first = identity(folder, tmp_path)
    assert len(read) == len(list(folder.rglob("*.safetensors")))
    read.clear()
    assert identity(folder, tmp_path) == first
    assert read == []
    norm(folder).touch()
    assert identity(folder, tmp_path) == first
    assert read == [norm(folder).name]
    read.clear()
    (memory,) = (tmp_path / ".made/contents").iterdir()
    memory.write_text('{"a": [[1], 2]}')
    assert identity(folder, tmp_path) == first
    assert len(read) > 1


def test_a_file_that_has_just_been_written_is_not_remembered(folder: Path, tmp_path: Path) -> None:
    """Another write may leave the same times."""
    first = identity(folder, tmp_path)
    rewrite_in_place(norm(folder), after=0)
    assert identity(folder, tmp_path) != first


def test_a_file_that_changes_while_it_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = contents._digest

    def writing(path: Path, start: int) -> bytes:
        rewrite_in_place(path)
        return digest(path, start)

    monkeypatch.setattr(contents, "_digest", writing)
    with pytest.raises(IncompleteCheckpoint, match="changed while it was read"):
        identity(folder, tmp_path)


def test_parts_of_files_against_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content := os.urandom(1000))
    for size in (7, 250, 999, 1000, 1001):
        monkeypatch.setattr(contents, "_PART_BYTES", size)
        monkeypatch.setattr(contents, "_CHUNK_BYTES", 5)
        parts = [content[at : at + size] for at in range(0, 1000, size)]
        plain = xxhash.xxh3_128(b"".join(xxhash.xxh3_128(part).digest() for part in parts))
        assert contents._hashes_of({"a": path}) == {"a": plain.hexdigest()}
