"""Runs Snakemake, then the commands for tables and pages, and reports each checkpoint's outcome.

Their output goes to a log that the next run overwrites; Snakemake keeps its own log of every run.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.subjects import Subject
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.places import Plans
from evaluation.dependencies.steps import STEPS
from evaluation.errors import time_in_words
from evaluation.records import RECORDED, recorded_error
from evaluation.results.job_logs import last_error
from evaluation.settings.plan import StagePlan
from evaluation.version import ROOT, SNAKEFILE
from evaluation.watching.attempts import forget_failure, note_failure
from evaluation.watching.work import Work, name_of

BEAT = 20.0
"""Seconds between two calls of `beat` while a process runs."""

PATIENCE = 60.0
"""Seconds that Snakemake has to end its jobs when it is asked to stop."""


def snakemake(configuration: Path, targets: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the command that makes some files (or options such as `--unlock`) with Snakemake."""
    fixed = ["--keep-going", "-s", str(SNAKEFILE), "--configfile", str(configuration)]
    return [sys.executable, "-m", "snakemake", *targets, *fixed, *arguments]


def run(
    command: Sequence[str], log: Path, beat: Callable[[int], None], *, appending: bool = False
) -> int:
    """Run a command, with its output in a log, and wait until it ends.

    If this process is interrupted, it asks the command to stop (SIGINT).

    Args:
        beat: Called every `BEAT` seconds with the command's process id.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    path = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    with open(log, "ab" if appending else "wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,  # Ctrl-C reaches only this process, which passes it on once
        )
        try:
            while True:
                beat(child.pid)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return child.wait(BEAT)
        finally:
            if child.returncode is None:
                _stop(child)


def _snakemake_error(log: Path) -> str:
    """Return the line of Snakemake's output that most likely states the error."""
    text = re.sub(r"(?m)^(\w+Error):\n", r"\1: ", _text(log))
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line and not line.startswith(" ")]
    said = [line.strip() for line in errors or lines]
    return f"{said[-1]} ({log})" if said else f"see {log}"


def is_locked(log: Path) -> bool:
    """Return whether Snakemake ended because another Snakemake works on the same files."""
    return "cannot be locked" in _text(log)


def _text(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def make_pages(
    plans: Plans, stages: Sequence[str], configuration: Path, beat: Callable[[int], None]
) -> Iterator[tuple[str, str]]:
    """Make all reports in a process of their own.

    Args:
        beat: Called every `BEAT` seconds with the id of the running process.

    Yields:
        Name and message of each stage; the name is empty where the reports could not be made.
    """
    results = Path(next(iter(plans.values())).config.results)
    log = results / "eval_logs" / "report.log"
    code = run(_evaluation("report", "--config", str(configuration)), log, beat)
    if code not in (0, RECORDED):
        yield "", f"no report: {_snakemake_error(log)}"
    else:
        yield from ((name, _verdict_line(plans[name])) for name in stages)


def _verdict_line(plan: StagePlan) -> str:
    """Return the stage's verdict so far, and the path of its report."""
    from evaluation.reporting.terminal import advice_lines

    verdict = advice_lines(plan)[:1] if plan.stage.bridge is not None else []
    where = f"report: {plan.results / 'report.html'}"
    return f"{plan.name}: {'; '.join([*verdict, where])}"


def _evaluation(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "evaluation", *arguments]


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """Ask a process and its children to end, and wait up to `PATIENCE` seconds."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
    end = time.monotonic() + PATIENCE
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.1)


@dataclass(frozen=True)
class Outcome:
    """Whether a checkpoint was evaluated, with a one-line message."""

    subject: Subject
    is_evaluated: bool
    line: str


def outcomes(work: Work, log: Path) -> Iterator[Outcome]:
    """Check each checkpoint's results, and store the failures for the next attempt.

    Args:
        work: The checkpoints of the run; a bridge that failed is added to its `skipped`.
    """
    outdated = Outdated(work.plans)
    for subject in sorted(work.ready, key=lambda one: one.role):  # bridges first
        name = name_of(subject.plan.name, subject.label)
        if not any(outdated(step, subject) for step in STEPS):
            forget_failure(subject)
            waits = subject.plan.stage.bridge and not work.is_compared(subject.plan.name)
            waiting = "; its deltas wait for the bridge" * bool(waits and subject.role == "step")
            yield Outcome(subject, True, f"{name}: evaluated{waiting}")
            continue
        recorded = recorded_error(subject.folder, *STEPS)  # a fault of the checkpoint itself
        why = recorded or _last_error(subject) or _snakemake_error(log)
        state = work.states.get(subject.folder, "")
        failure = note_failure(subject, state, why, own=recorded is not None)
        if subject.role == "bridge":
            work.skipped[name] = why
        changes = "when it changes, or " if failure.own else ""
        yield Outcome(
            subject,
            False,
            f"{name}: failed: {why}; tried again {changes}in {time_in_words(failure.wait)}",
        )


def _last_error(subject: Subject) -> str | None:
    line = last_error(subject.log)
    return f"{line} ({subject.log})" if line else None
