"""Locks a stage for one watcher: `<stage results>/.watch/lock.json` names its process.

A watcher takes over a lock of this host if its process has ended. It cannot check processes of other
hosts, so every watcher renews its lock. A lock that was not renewed for an hour (by the file system's
clock) is taken over, too.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from evaluation.files import temporary_path, write_json
from evaluation.orchestration.processes import Process, process
from evaluation.watching.attempts import FOLDER

ABANDONED = 3600.0
"""Seconds without renewal after which another host's lock is taken over."""


@dataclass(frozen=True)
class Holder:
    """The process that watches a stage, and the Snakemake that it has started, if one runs."""

    watcher: Process
    snakemake: Process | None = None

    def __str__(self) -> str:
        return f"process {self.watcher.pid} on {self.watcher.host}"


_HOLDER = TypeAdapter(Holder)


class StageLock:
    """The lock of a stage's results; `previous` is the holder from whom it was taken over."""

    def __init__(self, results: Path) -> None:
        self.path = results / FOLDER / "lock.json"
        self.previous: Holder | None = None
        self._own = Holder(process())

    def take(self) -> Holder | None:
        """Take the lock, or keep it; return the other holder, None if this process holds it now."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mine = temporary_path(self.path)
        try:
            mine.write_text(json.dumps(asdict(self._own)), encoding="utf-8")
            for _ in range(3):  # another process may take it between reading and linking
                holder = _holder(self.path)
                if holder is not None and holder.watcher == self._own.watcher:
                    os.utime(self.path)
                    return None
                if self.path.exists():
                    if holder is not None and not self._is_stale(holder, mine):
                        return holder
                    self._take_away(holder)
                with contextlib.suppress(FileExistsError):
                    os.link(mine, self.path)
                    self.previous = holder
                    return None
            return _holder(self.path)
        finally:
            mine.unlink(missing_ok=True)

    def note_child(self, snakemake: int | None) -> None:
        """Store the running Snakemake in the lock for whoever takes it over; None when it has ended."""
        self._own = Holder(self._own.watcher, None if snakemake is None else process(snakemake))
        with contextlib.suppress(OSError):
            if self._is_ours():
                write_json(self.path, asdict(self._own))

    def renew(self) -> None:
        """Renew the lock, if this process still holds it."""
        with contextlib.suppress(OSError):  # the next `take` notices
            if self._is_ours():
                os.utime(self.path)

    def release(self) -> None:
        """Remove the lock, if this process still holds it."""
        with contextlib.suppress(OSError):
            if self._is_ours():
                self.path.unlink()

    def _is_ours(self) -> bool:
        holder = _holder(self.path)
        return holder is not None and holder.watcher == self._own.watcher

    def _is_stale(self, holder: Holder, now: Path) -> bool:
        """Compare the lock's time with that of a new file, as the clocks of two hosts may differ."""
        if holder.watcher.is_here:
            return not holder.watcher.alive
        try:
            return now.stat().st_mtime - self.path.stat().st_mtime > ABANDONED
        except FileNotFoundError:
            return True

    def _take_away(self, stale: Holder | None) -> None:
        """Remove a stale lock, unless another process has replaced it since it was read."""
        aside = temporary_path(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path, aside)
            if stale is not None and _holder(aside) != stale:
                with contextlib.suppress(FileExistsError):
                    os.link(aside, self.path)
            aside.unlink(missing_ok=True)


def _holder(path: Path) -> Holder | None:
    """Return the holder that a lock names; None if there is no lock, or it cannot be read."""
    try:
        return _HOLDER.validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
