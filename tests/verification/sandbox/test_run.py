"""The sandbox as a whole: its limits, its end, and machines that do not offer one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evaluation.errors import SandboxError
from evaluation.verification.sandbox import syscalls
from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import MODES, close_sandbox, describe_sandbox, run_program
from tests.conftest import ROOT
from tests.verification.sandbox.arena import descendants, of_session
from tests.verification.sandbox.references import needs_sandbox

_RIGHT = "def f(x): return x + 1"
_TESTS = Tests(asserts=("assert f(1) == 2",))
_REFUSING = """
import errno, pyseccomp
from evaluation.verification.sandbox.run import run_program, describe_sandbox
from evaluation.verification.sandbox.model import Limits, Tests
rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
for call in {calls}:
    rules.add_rule(pyseccomp.ERRNO(errno.EPERM), call)
rules.load()
try:
    print(describe_sandbox())
    print(run_program("def f(): return 1", Tests(asserts=("assert f() == 1",)), Limits()))
except Exception as reason:
    print(type(reason).__name__, reason)
"""


def _run(program: str = _RIGHT, **limits: Any) -> ProgramVerdict:
    return run_program(program, _TESTS, Limits(**limits))


def _without(*calls: object) -> str:
    code = _REFUSING.format(calls=calls)
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return finished.stdout


@needs_sandbox
def test_the_strongest_sandbox_is_taken_and_reported() -> None:
    assert describe_sandbox() == "namespaces+seccomp"
    assert _without("unshare").splitlines() == ["landlock+seccomp", str(ProgramVerdict(True))]


def test_without_either_a_sentence_says_so() -> None:
    said = _without("unshare", 444)
    assert said.startswith("SandboxError generated programs cannot be run safely on this machine (")
    assert "namespaces: Operation not permitted" in said.replace("[Errno 1] ", "")
    assert "landlock: " in said
    assert said.count("\n") == 1


@pytest.fixture
def new_filter() -> Iterator[None]:
    """The filter is compiled anew, and not kept."""
    syscalls.compiled_filter.cache_clear()
    close_sandbox()
    yield
    syscalls.compiled_filter.cache_clear()


@pytest.mark.usefixtures("new_filter")
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(SandboxError, match="the package pyseccomp is not installed for"):
        _run()


@needs_sandbox
@pytest.mark.usefixtures("new_filter")
def test_a_sandbox_in_which_nothing_runs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose libraries need a call that the filter does not know."""
    kept = [name for name in syscalls._ALLOWED if name not in ("getdents64", "newfstatat")]
    monkeypatch.setattr(syscalls, "_ALLOWED", kept)
    with pytest.raises(SandboxError, match="a program that is right fails"):
        _run()


@needs_sandbox
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_worker_leaves_no_process(mode: str) -> None:
    code = (
        "from evaluation.verification.sandbox.run import *\n"
        "from evaluation.verification.sandbox.model import *\n"
        f"print(describe_sandbox(modes=['{mode}']), flush=True)\n"
        "tests = Tests(asserts=('assert f()',))\n"
        f"run_program('def f():\\n while True: pass', tests, Limits(seconds=500), modes=['{mode}'])"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline().decode() == f"{mode}+seccomp\n"
    session = os.getsid(min(descendants(worker.pid)))
    _wait_until(lambda: len(of_session(session)) == 3)  # starter, zygote, program
    worker.kill()
    worker.communicate()
    _wait_until(lambda: not of_session(session))


def _wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@needs_sandbox
def test_a_zygote_that_is_gone_is_made_anew() -> None:
    close_sandbox()
    before = descendants(os.getpid())
    assert _run().passed
    os.kill(min(descendants(os.getpid()) - before), signal.SIGKILL)
    assert _run().passed


@needs_sandbox
def test_a_forked_worker_has_a_sandbox_of_its_own() -> None:
    assert _run().passed
    child = os.fork()
    if child == 0:
        passed = _run().passed
        close_sandbox()
        os._exit(0 if passed else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _run().passed


@needs_sandbox
def test_memory_is_limited_and_given() -> None:
    program = "def f(x):\n    y = bytearray(200 << 20)\n    return x + 1"
    assert _run(program, memory_mb=512) == ProgramVerdict(True)
    outcome = _run(program, memory_mb=128)
    assert outcome == ProgramVerdict(False, "`assert f(1) == 2`: the program raises MemoryError")


@needs_sandbox
def test_time_is_computing_time() -> None:
    """A busy machine does not decide what passes; one that sleeps is ended all the same."""
    outcome = _run("def f(x):\n    while True: pass", seconds=1)
    assert outcome == ProgramVerdict(False, "it ran out of time (1 s) in `assert f(1) == 2`")
    begin = time.monotonic()
    outcome = _run("import time\ntime.sleep(99)", seconds=0.5)
    assert outcome == ProgramVerdict(False, "it waited for 0.5 s")
    assert time.monotonic() - begin < 10
