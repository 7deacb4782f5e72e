"""Whether the checkpoints of a run were evaluated or failed, from what the run left on disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.subjects import Subject
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import COLLECT, SCORE, STEP_DELTAS
from evaluation.records import read_record
from evaluation.results.job_logs import last_error
from evaluation.watching.attempts import forget_failure, note_failure
from evaluation.watching.runs import last_words
from evaluation.watching.work import Work, name_of
from evaluation.wording import time_in_words


@dataclass(frozen=True)
class Outcome:
    """A checkpoint that was evaluated, or was not, in one line."""

    subject: Subject
    is_evaluated: bool
    line: str


def outcomes(work: Work, log: Path) -> Iterator[Outcome]:
    """Look at each checkpoint's results; note which failed, for the next attempt.

    Args:
        work: What the run was started for; a bridge that failed is added to its `left_alone`.
        log: What Snakemake printed.

    Yields:
        The outcome of each checkpoint, bridges first.
    """
    outdated = Outdated(work.plans)
    for subject in sorted(work.ready, key=lambda one: one.role):  # bridges first
        name = name_of(subject.plan.name, subject.label)
        if _is_evaluated(subject, work, outdated):
            forget_failure(subject)
            waits = subject.plan.stage.bridge and not work.is_compared(subject.plan.name)
            waiting = "; its deltas wait for the bridge" * bool(waits and subject.role == "step")
            yield Outcome(subject, True, f"{name}: evaluated{waiting}")
            continue
        recorded = _recorded_error(subject, work)
        why = recorded or _last_error(subject) or last_words(log)
        state = work.states.get(subject.folder, "")
        failure = note_failure(subject, state, why, own=recorded is not None)
        if subject.role == "bridge":
            work.left_alone[name] = why
        changes = "when it changes, or " if failure.own else ""
        yield Outcome(
            subject,
            False,
            f"{name}: failed: {why}; tried again {changes}in {time_in_words(failure.wait)}",
        )


def _is_evaluated(subject: Subject, work: Work, outdated: Outdated) -> bool:
    if outdated.collect(subject):
        return False
    if subject.candidate is None:
        return True
    stage = subject.plan.name
    return not work.is_compared(stage) or not outdated.deltas(work.plans[stage], subject.candidate)


def _recorded_error(subject: Subject, work: Work) -> str | None:
    """Return the error of scores, tier files or deltas: the checkpoint is at fault, not the machine."""
    steps = [SCORE, COLLECT]
    if subject.role == "step" and work.is_compared(subject.plan.name):
        steps.append(STEP_DELTAS)
    for step in steps:
        record = read_record(subject.folder, step)
        if record is not None and record.error is not None:
            return record.error
    return None


def _last_error(subject: Subject) -> str | None:
    line = last_error(subject.log)
    return f"{line} ({subject.log})" if line else None
