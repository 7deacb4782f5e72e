"""What files on disk would stop a run of Snakemake, mended or told before it plans and starts jobs."""

import os
import shlex
import time
from collections.abc import Iterable
from pathlib import Path

from evaluation.dependencies.caches import CacheEntry, CacheStates
from evaluation.orchestration.stops import RunError


def reset_future_times(inputs: Iterable[Path]) -> None:
    """Set times in the future, which a wrong clock left, to now; raise RunError for another user's file.

    After each job, Snakemake stops if an input is later than an output. Records decide what is
    outdated, so their times mean nothing.
    """
    for path in inputs:
        if path.is_file() and path.stat().st_mtime > time.time():
            try:
                os.utime(path)
            except OSError as error:
                raise RunError(
                    f"{path}: its time is in the future, and Snakemake would stop after the next job; "
                    f"it cannot be reset ({error.strerror}): have its owner run `touch {path}`"
                ) from None


def check_writable(entries: Iterable[CacheEntry], states: CacheStates) -> None:
    """Raise RunError if an outdated cache may not be written; Snakemake's own error names no remedy."""
    for entry in entries:
        record = entry.record
        if record.is_file() and not os.access(record, os.W_OK) and states.state(entry) == "stale":
            raise RunError(
                f"{entry.folder}: was made from other settings or data than there are now, and you "
                f"may not write it; have its owner run `chmod u+w {shlex.quote(str(record))}` or make "
                "it again, or set `cache` to a folder of your own"
            )
