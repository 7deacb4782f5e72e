"""Failed evaluations, and when each is tried again: when its checkpoint changes, or later.

Kept in `<stage results>/.watch/failed.json`, so that a watcher that is started again, by cron for
one, does not try at once what has just failed.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from evaluation.checkpoints.subjects import Subject
from evaluation.files import write_json
from evaluation.regular_files import read_text

FOLDER = ".watch"

FIRST_WAIT = 15 * 60.0
"""Seconds until what failed for good is tried again; twice as many after each further failure."""

FIRST_WAIT_OF_QUEUE = 60.0
"""The same where the checkpoint is not at fault: a full queue, a lost job, a full disk."""

LONGEST_WAIT = 6 * 3600.0


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The last of `count` failures in a row of one checkpoint; `at` is Unix time.

    `state` is the checkpoint's, see `folder_state`; `own` if the checkpoint is at fault.
    """

    count: int
    at: float
    state: str
    why: str
    own: bool

    @property
    def wait(self) -> float:
        """Seconds from the failure until it is tried again."""
        first = FIRST_WAIT if self.own else FIRST_WAIT_OF_QUEUE
        return float(min(first * 2.0 ** min(self.count - 1, 20), LONGEST_WAIT))

    def left(self, state: str) -> float:
        """Return the seconds that are left until it is tried again.

        Args:
            state: The checkpoint's state now.

        Returns:
            0 for a checkpoint that has changed. Also where the clock shows that the failure is yet
            to come: it was set back.
        """
        passed = time.time() - self.at
        return 0.0 if state != self.state or passed < 0 else max(0.0, self.wait - passed)


_FAILURES = TypeAdapter(dict[str, Failure])


def read_failures(results: Path) -> dict[str, Failure]:
    """Return a stage's failures; those that cannot be read are forgotten, so tried again.

    Args:
        results: Folder of the stage's results.

    Returns:
        Failures by the subject's label.
    """
    try:
        return _FAILURES.validate_json(read_text(results / FOLDER / "failed.json"))
    except (OSError, ValueError):
        return {}


def note_failure(subject: Subject, state: str, why: str, *, own: bool) -> Failure:
    """Store a failure, and count it with those before it.

    Args:
        subject: The checkpoint that was not evaluated.
        state: The checkpoint's state when it was tried.
        why: What went wrong, in a sentence.
        own: Whether the checkpoint is at fault.

    Returns:
        The failure; its count begins anew where the checkpoint has changed, or another is at fault.
    """
    known = read_failures(subject.plan.results)
    last = known.get(subject.label)
    count = last.count + 1 if last and last.state == state and last.own == own else 1
    failure = Failure(count=count, at=time.time(), state=state, why=why, own=own)
    _write(subject.plan.results, {**known, subject.label: failure})
    return failure


def forget_failure(subject: Subject) -> None:
    """Remove the failure of a checkpoint that was evaluated, if there is one.

    Args:
        subject: The checkpoint.
    """
    known = read_failures(subject.plan.results)
    if known.pop(subject.label, None) is not None:
        _write(subject.plan.results, known)


def _write(results: Path, failures: dict[str, Failure]) -> None:
    content = {name: asdict(failure) for name, failure in failures.items()}
    write_json(results / FOLDER / "failed.json", content)
