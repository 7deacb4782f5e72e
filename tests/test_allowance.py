"""What a process may use of its machine, by made files of the kernel."""

import os
from pathlib import Path

import pytest
import torch

from evaluation import allowance
from evaluation.allowance import usable_cores, usable_memory
from evaluation.scoring.engine.device import limit_threads

GIGABYTE = 10**9


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("_GB", "0" * 9) + "\n")


TASK = "system.slice/job_7/step_0/user/task_0"
MACHINES: dict[str, tuple[str, dict[str, str], int, int]] = {
    "without groups": ("/", {}, 64, 500),
    "no limit": (
        "/a",
        {"a/cpu.max": "max 100000", "a/memory.max": "max", "a/memory.stat": "anon 9_GB"}, 64, 500
    ),
    "a container with two CPUs": (
        "/", {"cpu.max": "200000 100000", "memory.max": "4_GB", "memory.stat": "anon 1_GB\nfile 2_GB"}, 2, 3,
    ),
    "a job of Slurm, limited above its task": (
        f"/{TASK}",
        {
            "system.slice/job_7/memory.max": "16_GB",
            "system.slice/job_7/memory.stat": "anon 10_GB\nfile 5_GB",
            "system.slice/job_7/step_0/cpu.max": "450000 100000",
            f"{TASK}/memory.max": "max",
        },
        4, 6,
    ),
    "less than a core, and beyond its memory": (
        "/a", {"a/cpu.max": "20000 100000", "a/memory.max": "2_GB", "a/memory.stat": "anon 3_GB"}, 1, 0,
    ),
}  # fmt: skip
"""The process's control group, files of groups (`_GB` for nine zeros), usable cores and GB.

The machine has 64 CPUs, and 500 GB available.
"""


@pytest.mark.parametrize(
    ("group", "files", "cores", "gigabytes"), MACHINES.values(), ids=MACHINES.keys()
)
def test_a_part_of_a_machine(
    group: str,
    files: dict[str, str],
    cores: int,
    gigabytes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = f"\n0::{group}" if group else ""
    write(tmp_path / "proc/self/cgroup", f"4:memory:/other{second}")
    write(tmp_path / "proc/meminfo", f"MemTotal: 1 kB\nMemAvailable:   {500 * GIGABYTE // 1024} kB")
    for name, text in files.items():
        write(tmp_path / "sys/fs/cgroup" / name, text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    assert usable_cores(tmp_path) == cores
    assert usable_memory(tmp_path) == pytest.approx(gigabytes * GIGABYTE, abs=1024)


def test_this_machine() -> None:
    """Nothing is more than the machine has; the kernel's files can be read as they are here."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < usable_memory() < total
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("cores", "variable", "threads"), [(3, None, 3), (9, None, 6), (3, "6", 6)]
)
def test_threads_of_a_job(
    cores: int, variable: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than usable cores; the user's number stays."""
    monkeypatch.delenv(allowance.THREADS, raising=False)
    if variable is not None:
        monkeypatch.setenv(allowance.THREADS, variable)
    monkeypatch.setattr("evaluation.scoring.engine.device.usable_cores", lambda: cores)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(6)
        limit_threads()
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
