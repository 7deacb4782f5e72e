"""Weight files of the next checkpoint, read into memory while the last one is scored.

A job of several checkpoints names the next one (`plan`); once the present one's weights are where they
belong (`loaded`) a thread reads as much of its files as memory allows, and loading takes from there what
is unchanged. What cannot be read, or does not fit, is left: loading then reads the file, and says why not.
"""

import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.headers import Header
from evaluation.checkpoints.host_memory import available_bytes
from evaluation.checkpoints.shards import weight_files
from evaluation.errors import CheckpointError
from evaluation.files import open_regular

log = logging.getLogger(__name__)

SHARE = 0.5
"""Of the memory that is free, which one checkpoint may take."""
RESERVE = 4 << 30
"""Bytes that stay free for whatever else this job does."""


@dataclass(frozen=True)
class _Held:
    """A file's bytes, and its state when they were read."""

    content: memoryview
    size: int
    mtime_ns: int


class Ahead:
    """What was read ahead, of one checkpoint at most."""

    def __init__(self) -> None:
        self._next: Path | None = None
        self._of: Path | None = None
        self._held: dict[Path, _Held] = {}
        self._thread: threading.Thread | None = None
        self._is_stopped = threading.Event()

    def plan(self, checkpoint: Path | None) -> None:
        """Names the checkpoint to be read once another is loaded; None: there is none."""
        self._next = checkpoint

    def loading(self, checkpoint: Path) -> None:
        """Reads no more files of what is loaded now; those that were read stay until it is."""
        if checkpoint == self._of:
            self._stop()

    def loaded(self, checkpoint: Path) -> None:
        """Forgets what was loaded, and begins to read what comes next."""
        if self._next is not None or checkpoint == self._of:
            self._stop()
            self._held, self._of = {}, None
        if self._next is not None:
            self._of, self._next = self._next, None
            self._is_stopped.clear()
            self._thread = threading.Thread(
                target=self._read_all, args=(self._of,), name="ahead", daemon=True
            )
            self._thread.start()

    def _stop(self) -> None:
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def held(self, header: Header) -> memoryview | None:
        """A file's bytes, if they were read and it is as it was then."""
        found = self._held.get(header.path)
        if found is None or (found.size, found.mtime_ns) != (header.size, header.mtime_ns):
            return None
        return found.content

    def _read_all(self, checkpoint: Path) -> None:
        try:
            files = weight_files(checkpoint)
            size = sum(path.stat().st_size for path in files)
            free = available_bytes()
            if size > SHARE * free:
                log.info(
                    "%s: not read ahead: %.1f GB, of %.1f GB that are free",
                    checkpoint,
                    size / 1e9,
                    free / 1e9,
                )
                return
            for path in files:
                if self._is_stopped.is_set() or available_bytes() < RESERVE + path.stat().st_size:
                    break
                self._held[path] = _read(path)
        except (OSError, CheckpointError, MemoryError) as error:
            log.info("%s: not read ahead: %s", checkpoint, error)
        log.info("%s: %d files read ahead", checkpoint, len(self._held))


def _read(path: Path) -> _Held:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        content = bytearray(status.st_size)
        view, done = memoryview(content), 0
        while done < len(view) and (count := file.readinto(view[done:])):
            done += count
    if done < status.st_size:
        raise CheckpointError(f"{path}: became shorter while it was read")
    return _Held(view, status.st_size, status.st_mtime_ns)


AHEAD = Ahead()
"""Of this process."""
