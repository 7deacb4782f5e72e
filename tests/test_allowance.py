"""What a process may use of its machine: made control groups of both versions, and this one's own limits."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation import allowance, control_groups
from evaluation.allowance import usable_cores, usable_memory
from evaluation.scoring.engine.device import limit_threads
from tests.conftest import ROOT
from tests.tables import cases

GIGABYTE = 10**9


def written(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{content}".replace("_GB", "0" * 9) + "\n")


def make_machine(folder: Path, machine: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder be /proc and the control groups; `mounts` are lines of `root type options`."""
    place, proc = folder / "sys fs", folder / "proc"
    for name, content in machine.get("files", {}).items():
        written(place / name, content)
    shown = str(place).replace(" ", r"\040")
    mounts = ["21 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw"]
    for mount in machine["mounts"]:
        root, kind, options = mount.split()
        mounts.append(f"31 24 0:27 {root} {shown} rw shared:9 master:1 - {kind} {kind} {options}")
    written(proc / "self/mountinfo", "\n".join(mounts))
    written(proc / "self/cgroup", machine["cgroup"])
    written(proc / "meminfo", "MemTotal: 1 kB\nMemFree: 2 kB\n")
    available = int(machine.get("available", "500_GB").replace("_GB", "0" * 9))
    with open(proc / "meminfo", "a") as file:
        file.write(f"MemAvailable:   {available // 1024} kB\nHugePages_Total:    0\n")
    monkeypatch.setattr(control_groups, "PROC", proc)
    cpus = set(range(machine.get("cpus", 64)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cpus)


@pytest.mark.parametrize(("machine", "gigabytes"), cases("allowance", "memory"))
def test_memory(
    machine: dict[str, Any], gigabytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine(tmp_path, machine, monkeypatch)
    assert usable_memory() == pytest.approx(gigabytes * GIGABYTE, abs=1024)


@pytest.mark.parametrize(("machine", "cores"), cases("allowance", "cores"))
def test_cores(
    machine: dict[str, Any], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine(tmp_path, machine, monkeypatch)
    assert usable_cores() == cores


def test_without_proc_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "PROC", tmp_path)
    assert usable_memory() is None
    assert usable_cores() == len(os.sched_getaffinity(0))


def test_this_machine() -> None:
    """Nothing is more than the machine has; the kernel's files can be read as they are here."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usable = usable_memory()
    assert usable is not None
    assert 0 < usable < total
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_shell(kind: str) -> None:
    """Of `ulimit -v` or `-d` remains what the process has not taken: about as much as it then gets."""
    limit = GIGABYTE
    program = (
        "from evaluation.allowance import usable_memory; left = usable_memory()\n"
        "block = bytearray(left - (64 << 20)); print(left)\n"
        "try: bytearray(80 << 20)\nexcept MemoryError: print('no more')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(getattr(resource, kind), (limit, limit)),
        capture_output=True,
        text=True,
        check=True,
    )
    left, last = done.stdout.splitlines()
    assert 0.9 * limit < int(left) < limit
    assert last == "no more"


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
