"""Prefetched weights: the same model, nothing of what has changed since, and never more than fits."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints import prefetch, weights
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.prefetch import Prefetch, available_bytes
from evaluation.checkpoints.shards import weight_files
from tests.checkpoints.nanotron import age, llama, make_checkpoint


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Prefetch:
    """Of a process of its own, on a machine with much memory."""
    own = Prefetch()
    monkeypatch.setattr(weights, "PREFETCH", own)
    monkeypatch.setattr("evaluation.checkpoints.load.PREFETCH", own)
    monkeypatch.setattr(prefetch, "available_bytes", lambda: 64 << 30)
    return own


@pytest.fixture
def steps(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "1", tmp_path / "2"]
    for seed, folder in enumerate(folders):
        make_checkpoint(folder, llama(), tp=2, seed=seed)
    return folders


def load(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_model(open_checkpoint(folder)).named_parameters())


def load_first(fetched: Prefetch, steps: list[Path]) -> dict[str, torch.Tensor]:
    """Loads the first checkpoint, and waits until the second is prefetched."""
    fetched.plan(steps[1])
    found = load(steps[0])
    fetched.wait()
    return found


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_next_checkpoint_comes_from_memory(
    fetched: Prefetch, steps: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load(steps[1])
    assert not fetched.paths  # which nobody has named
    load_first(fetched, steps)
    assert fetched.paths == set(weight_files(steps[1]))
    opened: list[Path] = []
    monkeypatch.setattr(weights, "check_regular", opened.append)
    assert same(load(steps[1]), expected)
    assert not opened
    assert not fetched.paths


def test_a_file_that_has_changed_since_is_read_again(fetched: Prefetch, steps: list[Path]) -> None:
    load_first(fetched, steps)
    make_checkpoint(steps[1], llama(), tp=2, seed=9)
    age(steps[1])
    for path in weight_files(steps[1]):
        os.utime(path, ns=(1, path.stat().st_mtime_ns - 10**9))
    fetched.plan(None)
    assert same(load(steps[1]), load(steps[1]))
    assert not same(load(steps[1]), load(steps[0]))


def test_another_checkpoint_than_the_one_planned(fetched: Prefetch, steps: list[Path]) -> None:
    """It is read from its files, and what was prefetched stays until its turn."""
    expected = load_first(fetched, steps)
    assert same(load(steps[0]), expected)
    assert fetched.paths
    load(steps[1])
    assert not fetched.paths


BROKEN: dict[str, Any] = {
    "no weights": lambda folder: [path.unlink() for path in weight_files(folder)],
    "unfinished": lambda folder: (folder / "model" / "x.safetensors.tmp").touch(),
    "a folder for a file": lambda folder: (folder / "model" / "x.safetensors").mkdir(),
    "deleted": lambda folder: folder.rename(folder.with_name("elsewhere")),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_next_checkpoint_disturbs_nobody(
    fetched: Prefetch, steps: list[Path], broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = load(steps[0])
    BROKEN[broken](steps[1])
    caplog.set_level("INFO")
    assert same(load_first(fetched, steps), expected)
    assert "prefetched" in caplog.text
    assert same(load(steps[0]), expected)


@pytest.mark.parametrize("free", [1, (4 << 30) + 3000], ids=["none", "of a few files"])
def test_memory_is_left_to_others(
    fetched: Prefetch, steps: list[Path], free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load(steps[1])
    monkeypatch.setattr(prefetch, "available_bytes", lambda: free)
    load_first(fetched, steps)
    assert len(fetched.paths) < len(weight_files(steps[1]))
    assert all((4 << 30) + path.stat().st_size <= free for path in fetched.paths)
    assert same(load(steps[1]), expected)


def group(root: Path, name: str, limit: str, used: int, inactive: int) -> None:
    folder = root / "sys/fs/cgroup" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\n")


def test_memory_that_a_job_may_take(tmp_path: Path) -> None:
    """The least that any group above the process leaves, as Slurm limits a job and not its task."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 90 kB\nMemAvailable:   70 kB\n")
    assert available_bytes(tmp_path) == 70 * 1024
    (tmp_path / "proc/self/cgroup").write_text("0::/job_1/task_0\n")
    group(tmp_path, "job_1/task_0", "max", 3000, 0)
    assert available_bytes(tmp_path) == 70 * 1024
    group(tmp_path, "job_1", "9000", 5000, 1000)
    assert available_bytes(tmp_path) == 5000
    group(tmp_path, "job_1", "9000", 9500, 100)
    assert available_bytes(tmp_path) == 0
    assert available_bytes(tmp_path / "nowhere") == 0
