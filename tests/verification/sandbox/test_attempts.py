"""No program gets out of the sandbox, leaves anything behind, or is found right without being so."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from evaluation.verification.sandbox.model import Limits, Tests
from evaluation.verification.sandbox.run import describe_sandbox, run_program
from tests.verification.sandbox.arena import ATTEMPTS, MARK, Arena, Attempt
from tests.verification.sandbox.references import needs_sandbox


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with ExitStack() as stack:
        yield Arena(stack)


@needs_sandbox
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_an_attempt_fails_and_leaves_nothing(arena: Arena, attempt: Attempt) -> None:
    program = arena.fill_in(attempt.program)
    limits = Limits(seconds=attempt.seconds, memory_mb=attempt.memory_mb)
    outcome = run_program(program, Tests(asserts=(f"assert {attempt.test}",)), limits)
    assert outcome.passed is False
    assert arena.left() == []


def test_the_attempts_are_ones(arena: Arena) -> None:
    """Without a sandbox those that can be tried without harm get through."""
    tried = [attempt for attempt in ATTEMPTS if attempt.unconfined]
    failed = {}
    for attempt in tried:
        code = f"{arena.fill_in(attempt.program)}\nassert f() == 'escaped'"
        command = [sys.executable, "-S", "-c", code]
        finished = subprocess.run(command, cwd=arena.folder, capture_output=True, check=False)
        if finished.returncode:
            failed[attempt.name] = finished.stderr.decode()[-200:]
    for path in arena.folder.glob(f"{MARK}*"):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert failed == {}
    assert len(tried) >= 9
    assert len(ATTEMPTS) >= 40


_SECRETS = [
    "open({secret!r}).read()",
    "os.listdir({folder!r})",
    "open('/proc/self/environ').read()",
]


@needs_sandbox
@pytest.mark.parametrize("read", _SECRETS)
def test_landlock_hides_files(tmp_path: Path, read: str) -> None:
    if "landlock" not in describe_sandbox():
        pytest.skip("this kernel has no Landlock, without which programs may read files")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    asked = read.format(secret=str(secret), folder=str(tmp_path))
    program = f"import os\ndef f():\n    return {asked}"
    outcome = run_program(program, Tests(asserts=("assert f() is not None",)), Limits())
    assert outcome.passed is False
    assert "the sandbox does not allow it" in outcome.reason
