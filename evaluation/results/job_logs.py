"""Read a job's log: the error that it ended with, or its progress.

Jobs run on any node and share nothing but files, so their logs are the only source.
"""

import re
import time
from pathlib import Path

RUNNING_SECONDS = 15 * 60
"""A job counts as running if its log was written to within this time and does not end with an error."""

DAY = 24 * 3600

LOG_END = 1 << 16
"""Bytes at the end of a log that are read."""

# A bar of tqdm: `web:  45%|████▌     | 123k/273k [00:10<00:12, 12.3ktok/s]`.
_BAR = re.compile(
    r"(?P<what>[^:]+): +(?P<percent>\d+)%\|.*\| (?P<done>\S+/\S+) \[[^<]+<(?P<left>[\d:]+|\?), +(?P<rate>.+)\]"
)
# A scoring job's line when it begins an item: `12:30:00 INFO item 3 of 27: web`.
_ITEM = re.compile(r"[\d:]{8} INFO (?P<what>item \d+ of \d+): (?P<name>.+)")


def latest_log(*logs: Path) -> Path:
    """Return the log that was written to last; the first where none exists."""
    return max(logs, key=lambda log: log.stat().st_mtime if log.is_file() else 0.0)


def last_error(log: Path) -> str | None:
    """Return the sentence with which a job ended; None if the log's end shows no error."""
    errors = [line for line in _last_lines(log) if line.startswith(("error: ", "Traceback"))]
    return errors[-1].removeprefix("error: ") if errors else None


def is_running(log: Path, folder: Path | None = None) -> bool:
    """Return whether a log was written to recently, and does not end as a finished job's log.

    Args:
        folder: Folder of the job's results, which is the last line of a finished job; None: it has
            none.
    """
    is_fresh = log.is_file() and time.time() - log.stat().st_mtime < RUNNING_SECONDS
    return is_fresh and last_error(log) is None and _last_lines(log, 1) != [str(folder)]


def job_progress(log: Path) -> str | None:
    """Return a job's item, share, amount, rate, time left and estimated end by its log; None if unknown."""
    item, bar = None, None
    for line in _last_lines(log, None):
        if match := _ITEM.fullmatch(line):
            item, bar = match, None
        bar = _BAR.fullmatch(line.strip()) or bar
    names = [f"{item['what']}, {item['name']}"] if item else [bar["what"]] if bar else []
    if bar:
        names.append(
            f"{bar['percent']} %, {bar['done']}, {bar['rate'].strip()}{_end(bar['left'], log)}"
        )
    return ": ".join(names) or None


def _end(left: str, log: Path) -> str:
    """Return the time left and the estimated end, counted from when the log was written."""
    if left == "?":
        return ""
    seconds = 0
    for part in left.split(":"):
        seconds = 60 * seconds + int(part)
    end = time.localtime(log.stat().st_mtime + seconds)
    return (
        f", {left} left, until {time.strftime('%H:%M' if seconds < DAY / 2 else '%a %H:%M', end)}"
    )


def _last_lines(log: Path, count: int | None = 20) -> list[str]:
    """Return a log's last lines; each state of a progress bar is a line."""
    if not log.is_file():
        return []
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_END))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return lines if count is None else lines[-count:]
