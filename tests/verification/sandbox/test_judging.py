"""What tests may do with a program, what is said when it is wrong, and what a verdict rests on."""

from typing import Any

import pytest

from evaluation.verification.sandbox.model import FORGED, UNGUARDED, Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import run_program
from tests.tables import cases
from tests.verification.sandbox.references import needs_sandbox

pytestmark = needs_sandbox


def _run(program: str, *asserts: str, **tests: str) -> ProgramVerdict:
    return run_program(program, Tests(asserts=asserts, **tests), Limits(seconds=5))  # type: ignore[arg-type]


_CHECK = """
import math
def close(a, b):
    return math.isclose(a, b)
def check(candidate):
    assert candidate(1) == 2
    for n in range(3):
        assert close(candidate(n), n + 1), "not close"
"""


@pytest.mark.parametrize(
    ("program", "asserts", "tests"), cases("verification/sandbox/judging", "right")
)
def test_right_programs_pass(program: str, asserts: list[str], tests: dict[str, str]) -> None:
    assert _run(program, *asserts, **tests) == ProgramVerdict(True)


@pytest.mark.parametrize(
    ("program", "asserts", "tests"), cases("verification/sandbox/judging", "right_unguarded")
)
def test_right_programs_whose_tests_need_more_pass(
    program: str, asserts: list[str], tests: dict[str, str]
) -> None:
    assert _run(program, *asserts, **tests) == ProgramVerdict(True, note=UNGUARDED)
    assert _run("", *asserts, **tests).note == UNGUARDED


@pytest.mark.parametrize(
    ("program", "test", "reason"), cases("verification/sandbox/judging", "failing")
)
def test_the_failing_assertion_is_reported(program: str, test: str, reason: str | None) -> None:
    outcome = _run(program, test)
    assert outcome.passed is False
    assert len(outcome.reason) < 1000
    if reason is not None:
        assert outcome.reason == reason


def test_the_failing_assertion_of_a_source_is_reported() -> None:
    outcome = _run("def f(n): return 2", source=_CHECK, entry_point="f")
    assert outcome.reason == "`assert close(candidate(n), n + 1), 'not close'`: f(0) gave 2"


@pytest.mark.parametrize(("tests", "reason"), cases("verification/sandbox/judging", "unusable"))
def test_tests_that_cannot_be_run_are_no_failure(tests: dict[str, Any], reason: str) -> None:
    given = Tests(**{**tests, "asserts": tuple(tests.get("asserts", ()))})
    outcome = run_program("def f(x): return x + 1", given, Limits())
    assert outcome.passed is None
    assert outcome.reason.startswith("the tests cannot be run: ")
    assert reason in outcome.reason


@pytest.mark.parametrize(
    "program", ["f = None", "f = 5", "", "raise ImportError", "import sys\nsys.modules.clear()",
        "from os import getpid as f"]
)  # fmt: skip
def test_a_program_cannot_choose_not_to_be_judged(program: str) -> None:
    assert _run(program, "assert f(1) == 2").passed is False
    assert _run(program, "assert max(1, 2) == 2").passed is False


def test_nothing_is_left_for_the_next_program() -> None:
    first = (
        "import math, sys\nmath.pi = 4\nsys.stash = 1\nimport builtins\nbuiltins.stash = 1\ndef f(x): "
        "return x"
    )
    assert _run(first, "assert f(1) == 1") == ProgramVerdict(True)
    second = (
        "import math, sys\ndef f(x): return math.pi < 4 and not hasattr(sys, 'stash') and 'stash' not "
        "in dir(__builtins__)"
    )
    assert _run(second, "assert f(1)") == ProgramVerdict(True)


@pytest.mark.parametrize(
    ("program", "test", "note"), cases("verification/sandbox/judging", "rests_on")
)
def test_what_a_verdict_rests_on(program: str, test: str, note: str) -> None:
    outcome = _run(program, test)
    assert (outcome.passed, outcome.note) == (note != FORGED, note)


def test_the_program_uses_what_the_tests_set_up() -> None:
    """But for what only the tests use: that would tell what is expected."""
    setup = "import math\nLIMIT = 3\nWANTED = {2: 'two'}\ndef least(x): return min(x, LIMIT)"
    assert _run("def f(x): return least(math.ceil(x))", "assert f(7.5) == 3", setup=setup).passed
    found = "def f(x): return next(v for v in globals().values() if type(v) is dict and x in v)[x]"
    outcome = _run(found, "assert f(2) == WANTED[2]", setup=setup)
    assert (outcome.passed, outcome.note) == (False, FORGED)


@pytest.mark.parametrize(
    "call", ["open('/etc/passwd')", "__import__('socket').socket()", "__import__('os').fork()"]
)
def test_what_a_program_is_not_given_is_reported(call: str) -> None:
    outcome = _run(f"def f(x): return {call}", "assert f(1) == 2")
    assert outcome.passed is False
    assert "the sandbox does not allow it" in outcome.reason


_PASSES_PLAINLY = """
import os
try:
    os.fstat(6)  # only the plain run has so many descriptors
    os.write(5, b"0\\nend\\n")
    os.write(5, os.read(6, 32) + b"\\n")
    os._exit(0)
except OSError:
    pass
"""


@pytest.mark.parametrize(
    ("program", "asserts"), cases("verification/sandbox/judging", "plainly_passed")
)
def test_the_guarded_run_finds_it(program: str, asserts: list[str]) -> None:
    outcome = _run(_PASSES_PLAINLY + program, *asserts)
    assert (outcome.passed, outcome.note) == (False, FORGED)


def test_tests_about_objects_leave_it_unguarded() -> None:
    """Which is why such passes are counted."""
    test = "import inspect\nassert f(3) == 4"
    outcome = _run(f"{_PASSES_PLAINLY}def f(x): return 9", test)
    assert outcome == ProgramVerdict(True, note=UNGUARDED)
