"""Answers whose code is run: in the sandbox, against the tests of a probe.

A model's code may do anything, so it never runs in this process, and for seconds at most.
"""

from functools import reduce

from evaluation.errors import ScoringError
from evaluation.grading.checks.code import parse_python, python_code
from evaluation.verification.programs import joined
from evaluation.verification.sandbox.model import Limits, Outcome, Tests
from evaluation.verification.sandbox.run import run_program

LIMITS = Limits(seconds=5.0, memory_mb=512)
"""Of one answer with all its tests."""


def passes_tests(answer: str, /, tests: str) -> Outcome:
    """Whether an answer's code, all its fences one after the other, passes the tests, and by which run.

    Raises:
        ScoringError: the tests cannot be run, whatever the answer is.
        SandboxError: this machine has no sandbox to run them in.
    """
    if parse_python(answer) is None:
        return Outcome(False)
    program = reduce(joined, python_code(answer), "")
    outcome = run_program(program, Tests(source=tests), LIMITS)
    if outcome.passed is None:
        raise ScoringError(outcome.reason)
    return outcome
