"""No program gets out of the sandbox, leaves anything behind or is found right without being so."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import Any

import pytest

from evaluation.verification.sandbox.run import MODES
from tests.conftest import ROOT
from tests.tables import EVERYTHING
from tests.verification.sandbox.arena import KINDS, Arena
from tests.verification.sandbox.references import needs_sandbox

_NOBODY = "65534"
_CAN_START = """
import subprocess, sys, evaluation.verification.sandbox.run, numpy, pyseccomp
subprocess.run([sys.executable, "-c", ""], check=True)
"""


@functools.cache
def _interpreter_of_nobody() -> str | None:
    """An interpreter of this version that an unprivileged user may start, if we may become one."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for program in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [*_as_nobody(program), "-c", _CAN_START]
        streams = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        if subprocess.call(command, env=_environment(), cwd="/", **streams) == 0:
            return program
    return None


def _as_nobody(program: str) -> list[str]:
    return ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", program]


def _environment() -> dict[str, str]:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    full = {"EVAL_FULL": "1"} if EVERYTHING else {}
    return {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *packages]),
        "PATH": os.environ["PATH"],
        **full,
    }


@functools.cache
def _results(user: str, mode: str, kind: str) -> dict[str, Any]:
    command = [sys.executable]
    if user == "nobody":
        interpreter = _interpreter_of_nobody()
        if interpreter is None:
            pytest.skip("no interpreter that an unprivileged user could start from here")
        command = _as_nobody(interpreter)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        finished = subprocess.run(
            [*command, "-m", "tests.verification.sandbox.arena", mode, kind],
            env=_environment() | {"TMPDIR": folder},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert finished.returncode == 0, finished.stderr
    results: dict[str, Any] = json.loads(finished.stdout)
    return results


ALLOWED = {"thread", "socket pair"}
"""What asyncio needs; the pair is connected with itself."""


def _chosen() -> list[tuple[str, str, str]]:
    """User, mode and kind: each of these once, and every combination if EVAL_FULL is set."""
    kinds = ("attempts", "pretences")
    if EVERYTHING:
        every = [("own", mode, kind) for mode in MODES for kind in kinds]
        return [(user, *rest) for user in ("own", "nobody") for _, *rest in every]
    pairs = zip(("nobody", "own"), MODES, strict=True)
    once = [(user, mode, "attempts") for user, mode in pairs]
    return [*once, ("own", MODES[0], "pretences")]


@needs_sandbox
@pytest.mark.parametrize(("user", "mode", "kind"), _chosen())
def test_no_attempt_succeeds(user: str, mode: str, kind: str) -> None:
    results = _results(user, mode, kind)
    assert results["sandbox"] == f"{mode}+seccomp"
    assert results["user"] == (os.getuid() if user == "own" else int(_NOBODY))
    outcomes = results["outcomes"]
    assert outcomes.keys() == {attempt.name for attempt in KINDS[kind]}
    passed = {name for name, one in outcomes.items() if one["passed"] is not False}
    allowed = ALLOWED if kind == "attempts" else set()
    assert passed == allowed, {name: outcomes[name] for name in passed ^ allowed}
    assert {name: one["left"] for name, one in outcomes.items() if one["left"]} == {}
    assert results["processes left"] == 0


def test_there_are_enough_attempts() -> None:
    assert min(map(len, KINDS.values())) >= 35


def test_the_attempts_are_ones() -> None:
    """Without a sandbox those that can be tried without harm get through."""
    tried = [attempt for attempt in KINDS["attempts"] if attempt.works_unsandboxed]
    failed = {}
    with ExitStack() as stack:
        arena = Arena(stack)
        for attempt in tried:
            with tempfile.TemporaryDirectory() as folder:
                code = f"{arena.fill_in(attempt.program)}\nassert f() == 'escaped'"
                finished = subprocess.run(
                    [sys.executable, "-S", "-c", code], cwd=folder, capture_output=True, check=False
                )
            if finished.returncode:
                failed[attempt.name] = finished.stderr.decode()[-200:]
            for path in arena.folder.glob("sandbox-escape*"):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert failed == {}
    assert len(tried) >= 30
