"""What a job's log tells: the error that it ended with, or how far it has come.

Jobs run on any node and share only files with those who ask, so their logs are all there is.
"""

import re
import time
from pathlib import Path

RUNNING_SECONDS = 15 * 60
"""A log that was written to since then, and has no error at its end, is that of a running job."""

LOG_END = 1 << 16
"""Bytes at the end of a log that are read."""

# As tqdm writes a bar: `web:  45%|████▌     | 123k/273k [00:10<00:12, 12.3ktok/s]`.
_BAR = re.compile(
    r"(?P<what>[^:]+): +(?P<percent>\d+)%\|.*\| (?P<done>\S+/\S+) \[[^<]+<(?P<left>[^,]+), +(?P<rate>.+)\]"
)


def last_error(log: Path) -> str | None:
    """Return the sentence with which a job ended, if it ended with an error."""
    errors = [line for line in _last_lines(log) if line.startswith(("error: ", "Traceback"))]
    return errors[-1].removeprefix("error: ") if errors else None


def is_running(log: Path) -> bool:
    """Return whether a log was written to a short while ago."""
    return log.exists() and time.time() - log.stat().st_mtime < RUNNING_SECONDS


def job_progress(log: Path) -> str | None:
    """Return how far a job is in what it does now: share, amount, rate and time left; None if unknown."""
    bars = [bar for line in _last_lines(log) if (bar := _BAR.fullmatch(line.strip()))]
    if not bars:
        return None
    bar = bars[-1]
    left = "" if "?" in bar["left"] else f", {bar['left']} left"
    return f"{bar['what']}: {bar['percent']} %, {bar['done']}, {bar['rate'].strip()}{left}"


def _last_lines(log: Path) -> list[str]:
    """Return a log's last 20 lines; the states of a progress bar are a line each."""
    if not log.is_file():
        return []
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_END))
        return file.read().decode("utf-8", "replace").splitlines()[-20:]
