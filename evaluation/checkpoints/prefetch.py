"""Read the next checkpoint's weight files into the page cache while the current one is scored.

A job of several checkpoints names the next one (`plan`). Once the current one is loaded (`begin`), a
thread reads the next one's files, so that the operating system has them in memory. It drops them when
it needs the memory. Files that cannot be read are skipped: loading reports the error.
"""

import logging
import threading
from pathlib import Path

from evaluation.checkpoints.headers import weight_files
from evaluation.errors import CheckpointError

log = logging.getLogger(__name__)

_CHUNK_BYTES = 4 << 20


class Prefetch:
    """Reads the files of at most one checkpoint at a time, in one thread."""

    def __init__(self) -> None:
        self._next: Path | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = threading.Event()

    def plan(self, checkpoint: Path | None) -> None:
        """Name the Nanotron step to read once the current one is loaded; None: there is no next one."""
        self._next = checkpoint

    def begin(self) -> None:
        """Begin to read the planned checkpoint; stop reading the one before it."""
        self._is_stopped.set()
        self.wait()
        if self._next is not None:
            self._is_stopped.clear()
            self._thread = threading.Thread(
                target=self._read_all, args=(self._next,), name="prefetch", daemon=True
            )
            self._thread.start()
            self._next = None

    def wait(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _read_all(self, checkpoint: Path) -> None:
        buffer, size = bytearray(_CHUNK_BYTES), 0
        try:
            for path in weight_files(checkpoint):
                with open(path, "rb") as file:
                    while not self._is_stopped.is_set() and (count := file.readinto(buffer)):
                        size += count
        except (OSError, CheckpointError) as error:
            log.info("%s: not prefetched: %s", checkpoint, error)
            return
        log.info("%s: %d bytes prefetched", checkpoint, size)


PREFETCH = Prefetch()
"""The prefetch of this process."""
