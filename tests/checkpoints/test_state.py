"""When a checkpoint's files look otherwise, when it is another one, and what is read again."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evaluation.checkpoints import contents
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.state import checkpoint_state, is_left_of
from evaluation.errors import IncompleteCheckpoint
from evaluation.files import write_text
from tests.checkpoints.damage import norm
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import llama, make_checkpoint
from tests.checkpoints.nanotron import rewrite as write_again


def rewrite(path: Path, after: int = 1) -> None:
    """In place, with as many bytes and so many nanoseconds later."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + after))


def shard(folder: Path) -> Path:
    return sorted(folder.rglob("*.safetensors"))[-1]


def copy(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("20"))
    shutil.rmtree(folder)
    folder.with_name("20").rename(folder)


def another_folder(folder: Path) -> None:
    """A link that leads to files of equal names, sizes and times now."""
    shutil.copytree(folder / "model", folder.with_name("b"))
    for path in folder.with_name("b").rglob("*.safetensors"):
        rewrite(path, after=0)
    shutil.rmtree(folder / "model")
    (folder / "model").symlink_to(folder.with_name("b"))


CHANGES: dict[str, tuple[bool, bool, Callable[[Path], object]]] = {
    "an optimizer's state": (False, False, lambda f: write_text(f / "optimizer/a.safetensors", "1")),
    "a note": (False, False, lambda f: write_text(f / "README.md", "1")),
    "ends of answers": (True, False, lambda f: write_text(f / "generation_config.json", "{}")),
    "touched": (True, False, lambda f: shard(f).touch()),
    "copied": (True, False, copy),
    "a bit, all times kept": (True, True, lambda f: rewrite(shard(f), after=0)),
    "a tensor": (True, True, lambda f: write_again(norm(f), torch.zeros(32))),
    "a configuration": (True, True, lambda f: write_text(f / "config.yaml",
        (f / "config.yaml").read_text() + "a: 1\n")),
    "a link to another": (True, True, another_folder),
    "a file that is deleted": (False, True, lambda f: norm(f).unlink()),
}  # fmt: skip
"""Whether the state shows a change, whether it is another checkpoint, and what is done."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_checkpoint(tmp_path / "10", llama())
    return tmp_path / "10"


def identity(folder: Path, results: Path | None = None) -> str:
    return Contents(results).identity(open_checkpoint(folder))


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


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("read")
def test_what_a_change_is(folder: Path, tmp_path: Path, change: str) -> None:
    """Remembered hashes change nothing about it."""
    is_seen, is_other, act = CHANGES[change]
    state, before = checkpoint_state(folder), identity(folder)
    assert identity(folder, tmp_path / "results") == before
    act(folder)
    assert is_left_of(checkpoint_state(folder), json.loads(json.dumps(state))) == (not is_seen)
    assert (identity(folder, tmp_path / "results") != before) == is_other
    assert (identity(folder) != before) == is_other


def test_a_hugging_face_folder(tmp_path: Path) -> None:
    save_model(tmp_path).save_pretrained(tmp_path, max_shard_size="60KB")
    (tmp_path / "model.safetensors").unlink()
    state, before = checkpoint_state(tmp_path), identity(tmp_path)
    rewrite(shard(tmp_path), after=0)
    assert not is_left_of(checkpoint_state(tmp_path), state)
    assert identity(tmp_path) != before
    assert not is_left_of(("0",), None)


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


def test_a_file_that_has_just_been_written_is_not_remembered(folder: Path, tmp_path: Path) -> None:
    """Another write may leave the same times."""
    first = identity(folder, tmp_path)
    rewrite(norm(folder), after=0)
    assert identity(folder, tmp_path) != first


def test_a_file_that_changes_while_it_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = contents._digest

    def writing(path: Path, start: int) -> bytes:
        rewrite(path)
        return digest(path, start)

    monkeypatch.setattr(contents, "_digest", writing)
    with pytest.raises(IncompleteCheckpoint, match="changed while it was read"):
        identity(folder, tmp_path)


def test_links_are_not_followed_in_circles(folder: Path) -> None:
    before = checkpoint_state(folder)
    for name in ("model/all", "optimizer"):
        (folder / name).symlink_to("/")
    (folder / "model/circle").symlink_to(folder)
    assert checkpoint_state(folder) == before
