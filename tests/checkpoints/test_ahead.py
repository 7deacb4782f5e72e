"""Weights read ahead: the same model, nothing of what has changed since, and never more than fits."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints import ahead, filling
from evaluation.checkpoints.ahead import Ahead
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.host_memory import available_bytes
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.shards import weight_files
from tests.checkpoints.nanotron import age, llama, make_checkpoint


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    """Of a process of its own, on a machine with much memory."""
    own = Ahead()
    monkeypatch.setattr(filling, "AHEAD", own)
    monkeypatch.setattr("evaluation.checkpoints.load.AHEAD", own)
    monkeypatch.setattr(ahead, "available_bytes", lambda: 64 << 30)
    return own


@pytest.fixture
def steps(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "1", tmp_path / "2"]
    for seed, folder in enumerate(folders):
        make_checkpoint(folder, llama(), tp=2, seed=seed)
    return folders


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_model(open_checkpoint(folder)).named_parameters())


def finish(reading: Ahead) -> None:
    assert reading._thread is not None
    reading._thread.join()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_next_checkpoint_comes_from_memory(
    reading: Ahead, steps: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = weights(steps[1])
    reading.plan(steps[1])
    weights(steps[0])
    finish(reading)
    assert reading._held.keys() == set(weight_files(steps[1]))
    opened: list[Path] = []
    monkeypatch.setattr(filling, "check_regular", opened.append)
    assert same(weights(steps[1]), expected)
    assert not opened
    assert not reading._held


def test_nothing_is_read_ahead_that_no_one_named(reading: Ahead, steps: list[Path]) -> None:
    weights(steps[0])
    assert reading._thread is None


def test_a_file_that_has_changed_since_is_read_again(reading: Ahead, steps: list[Path]) -> None:
    reading.plan(steps[1])
    weights(steps[0])
    finish(reading)
    make_checkpoint(steps[1], llama(), tp=2, seed=9)
    age(steps[1])
    for path in weight_files(steps[1]):
        os.utime(path, ns=(1, path.stat().st_mtime_ns - 10**9))
    reading.plan(None)
    assert same(weights(steps[1]), weights(steps[1]))
    assert not same(weights(steps[1]), weights(steps[0]))


def test_another_checkpoint_than_the_one_in_view(reading: Ahead, steps: list[Path]) -> None:
    """It is read from its files, and what was read ahead stays for its own turn."""
    expected = weights(steps[0])
    reading.plan(steps[1])
    weights(steps[0])
    finish(reading)
    assert same(weights(steps[0]), expected)
    assert reading._held
    weights(steps[1])
    assert not reading._held


BROKEN: list[tuple[str, Any]] = [
    ("no weights", lambda folder: [path.unlink() for path in weight_files(folder)]),
    ("unfinished", lambda folder: (folder / "model" / "x.safetensors.tmp").touch()),
    ("a folder for a file", lambda folder: (folder / "model" / "x.safetensors").mkdir()),
    ("gone", lambda folder: folder.rename(folder.with_name("elsewhere"))),
]


@pytest.mark.parametrize("broken", [one[1] for one in BROKEN], ids=[one[0] for one in BROKEN])
def test_a_broken_next_checkpoint_disturbs_nobody(
    reading: Ahead, steps: list[Path], broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    expected = weights(steps[0])
    broken(steps[1])
    reading.plan(steps[1])
    caplog.set_level("INFO")
    assert same(weights(steps[0]), expected)
    finish(reading)
    assert "read ahead" in caplog.text
    assert same(weights(steps[0]), expected)


@pytest.mark.parametrize("free", [1, (4 << 30) + 3000], ids=["none", "of a few files"])
def test_memory_is_left_to_others(
    reading: Ahead, steps: list[Path], free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = weights(steps[1])
    monkeypatch.setattr(ahead, "available_bytes", lambda: free)
    reading.plan(steps[1])
    weights(steps[0])
    finish(reading)
    sizes = {path: path.stat().st_size for path in weight_files(steps[1])}
    assert len(reading._held) < len(sizes)
    assert all((4 << 30) + sizes[path] <= free for path in reading._held)
    assert same(weights(steps[1]), expected)


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
