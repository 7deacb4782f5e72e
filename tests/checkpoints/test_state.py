"""When a checkpoint is another one, or no longer whole, by its files alone."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.state import checkpoint_state, folder_state, is_left_of
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import llama, make_checkpoint


def rewrite(path: Path, after: int = 1) -> None:
    """In place, with as many bytes and so many nanoseconds later."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + after))


def replace(path: Path) -> None:
    """By another file of the same size and time, as `cp -p` and `mv` do."""
    other = path.with_name("other")
    shutil.copy2(path, other)
    rewrite(other, after=0)
    other.rename(path)


def shard(folder: Path) -> Path:
    return sorted(folder.rglob("*.safetensors"))[-1]


def make_nanotron(folder: Path) -> None:
    make_checkpoint(folder, llama())


def make_huggingface(folder: Path) -> None:
    """With two shards and an index."""
    save_model(folder).save_pretrained(folder, max_shard_size="60KB")
    (folder / "model.safetensors").unlink()


CHANGES: dict[str, Callable[[Path], object]] = {
    "a shard rewritten in place": lambda f: rewrite(shard(f)),
    "a shard replaced, its size and time kept": lambda f: replace(shard(f)),
    "a shard that came": lambda f: shutil.copy2(shard(f), shard(f).with_name("z.safetensors")),
    "a configuration rewritten": lambda f: rewrite(next(f.glob("*config.json"))),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", [make_nanotron, make_huggingface])
def test_another_one(tmp_path: Path, make: Callable[[Path], object], change: str) -> None:
    folder = tmp_path / "10"
    make(folder)
    before = checkpoint_state(folder)
    assert checkpoint_state(folder) == before
    CHANGES[change](folder)
    assert not is_left_of(checkpoint_state(folder), json.loads(json.dumps(before)))


@pytest.mark.parametrize("link", ["ckpts", "ckpts/10", "ckpts/10/model"])
def test_a_link_that_leads_elsewhere_now(tmp_path: Path, link: str) -> None:
    """To files of equal names, sizes and times; the scores of the one are not the other's."""
    for name in "ab":
        make_checkpoint(tmp_path / name / "ckpts/10", llama())
    shutil.rmtree(tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # times and all
    for path in (tmp_path / "b").rglob("*.safetensors"):
        rewrite(path, after=0)
    shutil.copytree(tmp_path / "a", tmp_path / "now")
    seen = []
    for name in "ab":
        place = tmp_path / "now" / link
        place.unlink() if place.is_symlink() else shutil.rmtree(place)
        place.symlink_to(tmp_path / name / link)
        folder = tmp_path / "now/ckpts/10"
        seen.append((checkpoint_state(folder), Contents().identity(open_checkpoint(folder))))
    assert not is_left_of(seen[1][0], seen[0][0])
    assert seen[0][1] != seen[1][1]


def test_what_decides_no_score(tmp_path: Path) -> None:
    folder = tmp_path / "10"
    make_checkpoint(folder, llama())
    before = checkpoint_state(folder)
    (folder / "optimizer").mkdir()
    (folder / "optimizer/state.safetensors").write_bytes(b"1")
    (folder / "checkpoint_metadata.json").write_text("{}")
    (folder / "README.md").write_text("read")
    assert checkpoint_state(folder) == before
    assert checkpoint_state(tmp_path / "none") == ()


def test_deleted_file_by_file(tmp_path: Path) -> None:
    """What is left is still of the checkpoint that was scored; half of it at another time is not."""
    folder = tmp_path / "10"
    make_checkpoint(folder, llama())
    before = checkpoint_state(folder)
    for path in sorted(folder.rglob("*.*")):
        path.unlink()
        assert is_left_of(checkpoint_state(folder), before)
    assert checkpoint_state(folder) == ()
    assert not is_left_of(("0",), before)
    assert not is_left_of(("0",), None)


def test_links_to_everything(tmp_path: Path) -> None:
    """Links are not followed out of a checkpoint, nor in circles, and any look ends."""
    folder = tmp_path / "10"
    make_checkpoint(folder, llama())
    before, whole = checkpoint_state(folder), folder_state(folder)
    for name in ("model/all", "optimizer"):
        (folder / name).symlink_to("/")
    (folder / "processes").symlink_to("/proc")
    (folder / "model/circle").symlink_to(folder)
    assert checkpoint_state(folder) == before
    assert folder_state(folder) not in (whole, "")
