"""Weight files of the next checkpoint, read into memory while the current one is scored.

A job of several checkpoints names the next one (`plan`); once the present one's weights are in the
model (`loaded`) a thread reads as much of its files as memory allows, and loading takes from there what
is unchanged. What cannot be read, or does not fit, is left: loading then reads the file, and reports
what is wrong with it.
"""

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.headers import Header
from evaluation.checkpoints.shards import weight_files
from evaluation.errors import CheckpointError
from evaluation.files import open_regular

log = logging.getLogger(__name__)

SHARE = 0.5
"""Share of the free memory that one checkpoint may take."""
RESERVE = 4 << 30
"""Bytes that stay free for whatever else this job does."""

_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@dataclass(frozen=True)
class _File:
    """A file's bytes, and its state when they were read."""

    content: memoryview
    size: int
    mtime_ns: int


class Prefetch:
    """The files that were read in advance, of one checkpoint at most."""

    def __init__(self) -> None:
        self._next: Path | None = None
        self._checkpoint: Path | None = None
        self._files: dict[Path, _File] = {}
        self._thread: threading.Thread | None = None
        self._is_stopped = threading.Event()

    @property
    def paths(self) -> set[Path]:
        """The files in memory."""
        return set(self._files)

    def plan(self, checkpoint: Path | None) -> None:
        """Name the checkpoint to be read once another is loaded; None: there is none."""
        self._next = checkpoint

    def loading(self, checkpoint: Path) -> None:
        """Read no more files of what is loaded now; those that were read stay until it is."""
        if checkpoint == self._checkpoint:
            self._stop()

    def loaded(self, checkpoint: Path) -> None:
        """Forget what was loaded, and begin to read what comes next."""
        if self._next is not None or checkpoint == self._checkpoint:
            self._stop()
            self._files, self._checkpoint = {}, None
        if self._next is not None:
            self._checkpoint, self._next = self._next, None
            self._is_stopped.clear()
            self._thread = threading.Thread(
                target=self._read_all, args=(self._checkpoint,), name="prefetch", daemon=True
            )
            self._thread.start()

    def wait(self) -> None:
        """Wait until all that fits has been read."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _stop(self) -> None:
        self._is_stopped.set()
        self.wait()

    def content(self, header: Header) -> memoryview | None:
        """Return a file's bytes, if they were read and it is as it was then."""
        found = self._files.get(header.path)
        if found is None or (found.size, found.mtime_ns) != (header.size, header.mtime_ns):
            return None
        return found.content

    def _read_all(self, checkpoint: Path) -> None:
        try:
            files = weight_files(checkpoint)
            size, free = sum(path.stat().st_size for path in files), available_bytes()
            if size > SHARE * free:
                sizes = size / 1e9, free / 1e9
                log.info(
                    "%s: not prefetched: %.1f GB, of %.1f GB that are free", checkpoint, *sizes
                )
                return
            for path in files:
                if self._is_stopped.is_set() or available_bytes() < RESERVE + path.stat().st_size:
                    break
                self._files[path] = _read(path)
        except (OSError, CheckpointError, MemoryError) as error:
            log.info("%s: not prefetched: %s", checkpoint, error)
        log.info("%s: %d files prefetched", checkpoint, len(self._files))


def _read(path: Path) -> _File:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        view, done = memoryview(bytearray(status.st_size)), 0
        while done < len(view) and (count := file.readinto(view[done:])):
            done += count
    if done < status.st_size:
        raise CheckpointError(f"{path}: became shorter while it was read")
    return _File(view, status.st_size, status.st_mtime_ns)


def available_bytes(root: Path = Path("/")) -> int:
    """Return how much memory this process may still take; 0 if unknown.

    That is the least of what the machine has free and what each control group leaves: Slurm limits a
    job by them, and those above a process limit it too. Pages of files that the kernel can drop count
    as free.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        machine = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 0
    return max(0, min([machine * 1024, *_left_in_groups(root)]))


def _left_in_groups(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        folder = base / group.lstrip("/")
        for place in [folder, *folder.parents]:
            left = _left(place, *(_V1 if controllers else _V2))
            if left is not None:
                yield left
            if place == base:
                break


def _left(group: Path, limit: str, usage: str, inactive: str) -> int | None:
    """Return what a group's limit leaves; None if it has none."""
    try:
        most, used = (group / limit).read_text().strip(), int((group / usage).read_text())
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if not most.isdigit():  # `max`
        return None
    return int(most) - used + int(stat.get(inactive, 0))


PREFETCH = Prefetch()
"""The prefetch of this process."""
