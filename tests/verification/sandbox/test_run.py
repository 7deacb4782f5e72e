"""Verdicts of the sandbox: what tests may do, what is said of a failure, limits, machines without one."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evaluation.errors import SandboxError
from evaluation.verification.sandbox import filter as calls
from evaluation.verification.sandbox import run
from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import describe_sandbox, run_program
from tests.conftest import ROOT
from tests.tables import cases
from tests.verification.sandbox.arena import descendants, of_session
from tests.verification.sandbox.references import needs_sandbox

_RIGHT = "def f(x): return x + 1"
_TESTS = Tests(asserts=("assert f(1) == 2",))


def _run(program: str = _RIGHT, tests: Tests = _TESTS, **limits: Any) -> ProgramVerdict:
    return run_program(program, tests, Limits(**limits))


def _tests(given: dict[str, Any]) -> Tests:
    return Tests(**{**given, "asserts": tuple(given.get("asserts", ()))})


@needs_sandbox
@pytest.mark.parametrize(("program", "tests"), cases("verification/sandbox/judging", "right"))
def test_right_programs_pass(program: str, tests: dict[str, Any]) -> None:
    assert _run(program, _tests(tests)) == ProgramVerdict(True)


@needs_sandbox
@pytest.mark.parametrize(
    ("program", "tests", "reason"), cases("verification/sandbox/judging", "wrong")
)
def test_the_failing_assertion_is_reported(program: str, tests: Any, reason: str) -> None:
    outcome = _run(program, _tests(tests), seconds=5)
    assert (outcome.passed, outcome.reason) == (False, reason)


@needs_sandbox
@pytest.mark.parametrize(("tests", "reason"), cases("verification/sandbox/judging", "unusable"))
def test_tests_that_cannot_be_run_are_no_failure(tests: dict[str, Any], reason: str) -> None:
    outcome = _run(tests=_tests(tests))
    assert outcome.passed is None
    assert reason in outcome.reason


@needs_sandbox
def test_memory_is_limited_and_given() -> None:
    program = "def f(x):\n    y = bytearray(200 << 20)\n    return x + 1"
    assert _run(program, memory_mb=512).passed
    assert "raises MemoryError" in _run(program, memory_mb=128).reason


@needs_sandbox
def test_time_is_computing_time_and_one_that_sleeps_is_ended_all_the_same() -> None:
    outcome = _run("def f(x):\n    while True: pass", seconds=1)
    assert outcome == ProgramVerdict(False, "it ran out of time (1 s) in `assert f(1) == 2`")
    begin = time.monotonic()
    assert _run("import time\ntime.sleep(99)", seconds=0.5).reason == "it waited (0.5 s)"
    assert time.monotonic() - begin < 10


@needs_sandbox
def test_a_killed_worker_leaves_no_process() -> None:
    code = (
        "from evaluation.verification.sandbox.run import *\n"
        "from evaluation.verification.sandbox.model import *\n"
        "print(describe_sandbox(), flush=True)\n"
        "tests = Tests(asserts=('assert f()',))\n"
        "run_program('def f():\\n while True: pass', tests, Limits(seconds=500))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert "seccomp" in worker.stdout.readline().decode()
    _wait_until(lambda: bool(descendants(worker.pid)))
    (program,) = descendants(worker.pid)
    worker.kill()
    worker.communicate()
    _wait_until(lambda: not of_session(program))


def _wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def anew() -> Iterator[None]:
    """The filter is compiled and tried anew."""
    for cached in (calls.compiled_filter, run._confinement):
        cached.cache_clear()
    yield
    for cached in (calls.compiled_filter, run._confinement):
        cached.cache_clear()
    run.use("seccomp")


@pytest.mark.usefixtures("anew")
def test_without_seccomp_programs_are_refused_unless_none_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(SandboxError, match=r"pyseccomp is not installed .* write `sandbox: none`"):
        _run()
    run.use("none")
    assert describe_sandbox() == "none"
    assert _run().passed
    assert _run("def f(x):\n    while True: pass", seconds=1).passed is False
    assert _run("import socket\nsocket.socket()\ndef f(x): return 2").passed
