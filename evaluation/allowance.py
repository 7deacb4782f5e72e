"""How much memory and how many cores this process may use: jobs and containers have a part of their machine.

Limits are those of its control group (version 2) and of the group's parents: a task of Slurm has those of its
job. Imports only the standard library. `root` is the root of the file system.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

THREADS = "OMP_NUM_THREADS"
"""The variable with which a user or a parent sets the threads of libraries."""

_ROOT = Path("/")
_PHRASES = (
    "annot allocate memory", "DefaultCPUAllocator", "failed to map segment", "cannot map zero-fill",
)  # fmt: skip
"""What the system, PyTorch and the loader of libraries write where memory has run out."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that this machine's memory ran out; PyTorch has no class for that."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _PHRASES)


def usable_memory(root: Path = _ROOT) -> int:
    """Return how many more bytes this process can take; cached files count as free."""
    free = [1024 * _number(root / "proc/meminfo", "MemAvailable:")]
    for group in _groups(root):
        if (limit := _text(group / "memory.max").strip()).isdecimal():
            free.append(int(limit) - _number(group / "memory.stat", "anon"))
    return max(0, min(free))


def usable_cores(root: Path = _ROOT) -> int:
    """Return how many cores this process may keep busy, at least 1; a part of a core does not count."""
    quotas = [_text(group / "cpu.max").split() for group in _groups(root)]
    shares = [int(quota[0]) / int(quota[1]) for quota in quotas if quota and quota[0] != "max"]
    return max(1, int(min([len(os.sched_getaffinity(0)), *shares])))


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's control group and its parents, which need not exist."""
    lines = _text(root / "proc/self/cgroup").splitlines()
    path = PurePosixPath(next((line[4:] for line in lines if line.startswith("0::/")), ""))
    for part in (path, *path.parents):
        yield root / "sys/fs/cgroup" / part


def _number(path: Path, name: str) -> int:
    """Return the number after a name in a table of the kernel, or 0."""
    lines = map(str.split, _text(path).splitlines())
    return next((int(line[1]) for line in lines if line[0] == name), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:  # no such file in this kernel, or a group that has just been removed
        return ""
