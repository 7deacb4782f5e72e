"""How much memory and how many cores this process may use: a job is often given a part of its machine.

Slurm, containers and systemd limit control groups; a shell limits a process (`ulimit`). The machine's own
figures (MemAvailable, the number of CPUs) show neither. Imports only the standard library.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from evaluation import control_groups
from evaluation.control_groups import content, groups, number

THREADS = "OMP_NUM_THREADS"
"""The variable with which a user or a parent sets the threads of libraries."""

_LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")
"""Limits of a group: beyond the first and third it is killed, beyond the second slowed down."""

_LIMITED_PAGES = ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5))
"""Limits of a process, and the field of /proc/self/statm with the pages that count."""


_PHRASES = (
    "annot allocate memory", "DefaultCPUAllocator", "failed to map segment", "cannot map zero-fill",
)  # fmt: skip
"""What the system, PyTorch and the loader of libraries write where memory has run out."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that this machine's memory ran out; PyTorch has no class for that."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _PHRASES)


def usable_memory() -> int | None:
    """Return how many more bytes this process can take; None on another system than Linux."""
    left = [*_left_on_machine(), *map(_left_in, groups("memory")), *_left_of_process()]
    known = [size for size in left if size is not None]
    return max(0, min(known)) if known else None


def usable_cores() -> int:
    """Return how many cores this process may keep busy, at least 1; a part of a core does not count."""
    shares = [share for group in groups("cpu") if (share := _cores_of(group)) is not None]
    return max(1, int(min([len(os.sched_getaffinity(0)), *shares])))


def _left_on_machine() -> Iterator[int]:
    """Yield the memory that Linux calls available, which includes its caches of files."""
    for line in content(control_groups.PROC / "meminfo").splitlines():
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            yield 1024 * int(size.split()[0])


def _left_in(group: Path) -> int | None:
    """Return the memory that a group leaves; cached files count as free, as they are dropped for others."""
    limits = [limit for name in _LIMITS if (limit := number(group / name)) is not None]
    if not limits:
        return None
    used = [number(group / name) or 0 for name in ("memory.current", "memory.usage_in_bytes")]
    return min(limits) - max(0, sum(used) - _cached(group))


def _cached(group: Path) -> int:
    """Return the bytes of file pages of a group and its children, which version 1 calls `total_…`."""
    lines = content(group / "memory.stat").splitlines()
    sizes = {name: int(size) for name, size in (line.split() for line in lines)}
    names = ("active_file", "inactive_file")
    return sum(sizes.get(f"total_{name}", sizes.get(name, 0)) for name in names)


def _left_of_process() -> Iterator[int]:
    """Yield what the limits of `ulimit -v` and `ulimit -d` leave of this process's address space."""
    pages = content(control_groups.PROC / "self/statm").split()
    for kind, field in _LIMITED_PAGES:
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY and pages:
            yield soft - int(pages[field]) * resource.getpagesize()


def _cores_of(group: Path) -> float | None:
    """Return how many cores' time a group has; None if all of it."""
    quota, period, *_ = [*content(group / "cpu.max").split(), "max", "max"]
    if quota.isdecimal() and period.isdecimal():
        return int(quota) / int(period)
    former, length = (number(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return former / length if former is not None and former > 0 and length else None
