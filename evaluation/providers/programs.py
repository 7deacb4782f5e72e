"""Programs of a provider's tasks, run in the sandbox in which all programs are run.

Providers run `python3 -c <program and tests>`: the program is the main module, and passes if it ends
well. Here it must reach the last test, too.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from evaluation.providers.score import Limits, Outcome
from evaluation.settings.verifiers import Program, ProgramWithPackages
from evaluation.verification.pool import verify_all
from evaluation.verification.verdicts import Verdict

_SETUP = '__name__ = "__main__"'

_MEMORY_WITH_PACKAGES = 8192
"""Megabytes of addresses, of which libraries reserve more than they use."""


def run_programs(
    outcomes: Sequence[Outcome], limits: Limits, workers: int, python: str | None
) -> list[Outcome]:
    """Run the program of each outcome that has one, which settles its scores.

    Args:
        outcomes: Outcomes of a provider's task, in any order.
        limits: What reading a program and its verdict may take, beside its own seconds.
        workers: Programs run at once.
        python: Interpreter of the environment whose packages they use; None: they use none.

    Returns:
        The outcomes in their order.

    Raises:
        SandboxError: This machine offers no sandbox for them.
    """
    found = list(outcomes)
    waiting = {number: one.program for number, one in enumerate(found) if one.program is not None}
    jobs = [
        (
            _verifier(program.seconds, python),
            {"tests": program.tests, "setup": _SETUP, "is_program": True},
            program.text,
        )
        for program in waiting.values()
    ]
    numbers = list(waiting)
    verdicts = verify_all(
        jobs,
        workers=workers,
        seconds=limits.seconds,
        memory_mb=limits.memory_mb,
    )
    for place, verdict in verdicts:
        number = numbers[place]
        found[number] = _settled(found[number], verdict)
    return found


def _verifier(seconds: float, python: str | None) -> Program:
    if python is None:
        return Program(kind="program", seconds=seconds)
    return ProgramWithPackages(
        kind="program",
        seconds=seconds,
        memory_mb=_MEMORY_WITH_PACKAGES,
        python=os.path.abspath(python),
    )


def _settled(outcome: Outcome, verdict: Verdict) -> Outcome:
    assert outcome.program is not None
    if verdict.credit is None:
        return Outcome(None, verdict.reason)
    scores = outcome.scores if verdict.credit == 1 else outcome.program.failed
    return replace(outcome, scores=scores, reason=verdict.reason, note=verdict.note, program=None)
