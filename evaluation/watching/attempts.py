"""Stores failed evaluations; each is tried again when its checkpoint changes, or after a waiting time.

They are stored in `<stage results>/.watch/failed.json`, so that a restarted watcher (for example by
cron) does not immediately try again what has just failed.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from evaluation.checkpoints.subjects import Subject
from evaluation.files import write_json

FOLDER = ".watch"

FIRST_WAIT = 15 * 60.0
"""Seconds until a checkpoint that is at fault is tried again; doubled after each further failure."""

FIRST_WAIT_OF_QUEUE = 60.0
"""The same if the checkpoint is not at fault: a full queue, a lost job, a full disk."""

LONGEST_WAIT = 6 * 3600.0


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The last of `count` consecutive failures of one checkpoint; `at` is Unix time.

    `state` is the checkpoint's (see `folder_state`); `own` is whether the checkpoint is at fault.
    """

    count: int
    at: float
    state: str
    why: str
    own: bool

    @property
    def wait(self) -> float:
        """Seconds from the failure until the next attempt."""
        first = FIRST_WAIT if self.own else FIRST_WAIT_OF_QUEUE
        return float(min(first * 2.0 ** min(self.count - 1, 20), LONGEST_WAIT))

    def left(self, state: str) -> float:
        """Return the seconds until the next attempt: 0 if it has changed, or failed in the future."""
        passed = time.time() - self.at
        return 0.0 if state != self.state or passed < 0 else max(0.0, self.wait - passed)


_FAILURES = TypeAdapter(dict[str, Failure])


def read_failures(results: Path) -> dict[str, Failure]:
    """Return a stage's failures; none if the file cannot be read, so all are tried again."""
    try:
        return _FAILURES.validate_json(
            (results / FOLDER / "failed.json").read_text(encoding="utf-8")
        )
    except (OSError, ValueError):
        return {}


def note_failure(subject: Subject, state: str, why: str, *, own: bool) -> Failure:
    """Store a failure, and how many there were with this state and fault (`own`: of the checkpoint)."""
    failures = read_failures(subject.plan.results)
    last = failures.get(subject.label)
    count = last.count + 1 if last and last.state == state and last.own == own else 1
    failure = Failure(count=count, at=time.time(), state=state, why=why, own=own)
    _write(subject.plan.results, {**failures, subject.label: failure})
    return failure


def forget_failure(subject: Subject) -> None:
    """Remove the stored failure of an evaluated checkpoint, if there is one."""
    failures = read_failures(subject.plan.results)
    if failures.pop(subject.label, None) is not None:
        _write(subject.plan.results, failures)


def _write(results: Path, failures: dict[str, Failure]) -> None:
    content = {name: asdict(failure) for name, failure in failures.items()}
    write_json(results / FOLDER / "failed.json", content)
