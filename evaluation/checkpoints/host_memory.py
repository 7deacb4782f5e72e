"""How much memory this process may still take: what the machine has free, and what its job is allowed.

Slurm limits a job by control groups, of which those above a process limit it too. Pages of files that
the kernel can drop count as free.
"""

from collections.abc import Iterator
from pathlib import Path

_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def available_bytes(root: Path = Path("/")) -> int:
    """The least of what the machine and the control groups of this process leave; 0 if unknown."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        machine = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 0
    return max(0, min([machine * 1024, *_left_to_groups(root)]))


def _left_to_groups(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        names = _V1 if controllers else _V2
        folder = base / group.lstrip("/")
        for place in [folder, *folder.parents]:
            left = _left(place, *names)
            if left is not None:
                yield left
            if place == base:
                break


def _left(group: Path, limit: str, usage: str, inactive: str) -> int | None:
    """What a group's limit leaves; None if it has none."""
    try:
        most, used = (group / limit).read_text().strip(), int((group / usage).read_text())
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if not most.isdigit():  # `max`
        return None
    return int(most) - used + int(stat.get(inactive, 0))
