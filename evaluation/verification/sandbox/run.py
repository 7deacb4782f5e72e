"""Runs programs in the strongest sandbox that the machine offers, which is kept for the next one."""

import atexit
import os
import threading
from collections.abc import Sequence

from evaluation.errors import SandboxError
from evaluation.verification.sandbox.connection import Sandbox
from evaluation.verification.sandbox.model import Limits, Outcome, Tests
from evaluation.verification.sandbox.syscalls import compiled_filter
from evaluation.verification.sandbox.two_runs import check, judge_program

MODES = ("namespaces", "landlock")
"""Kinds of sandbox, the strongest first; each has the seccomp filter and the limits beside it."""
_lock = threading.Lock()
_open: dict[tuple[int, str], Sandbox] = {}
"""The sandbox of this process; one that was forked from another has none yet."""


def run_program(
    program: str, tests: Tests, limits: Limits, *, modes: Sequence[str] = MODES
) -> Outcome:
    """Runs the tests against a program in the strongest sandbox of these that the machine offers.

    Raises SandboxError where it offers none.
    """
    with _lock:
        try:
            return judge_program(_sandbox(modes), program, tests, limits)
        except SandboxError:  # it ended, perhaps before this program; a new one tells
            return judge_program(_sandbox(modes), program, tests, limits)


def describe_sandbox(*, modes: Sequence[str] = MODES) -> str:
    """The sandbox that `run_program` uses, for the results: `namespaces+seccomp`."""
    with _lock:
        return f"{_sandbox(modes).mode}+seccomp"


def close_sandbox() -> None:
    """Ends the processes that are kept for the next program."""
    with _lock:
        for sandbox in _open.values():
            sandbox.close()
        _open.clear()


def _sandbox(modes: Sequence[str]) -> Sandbox:
    compiled_filter()  # without which there is none of any kind
    reasons = []
    for mode in modes:
        sandbox = _open.get((os.getpid(), mode))
        if sandbox is not None and sandbox.is_open:
            return sandbox
        try:
            sandbox = Sandbox(mode)
            check(sandbox)
        except SandboxError as reason:
            reasons.append(str(reason))
            continue
        _open[os.getpid(), mode] = sandbox
        return sandbox
    raise SandboxError(
        f"generated programs cannot be run safely on this machine ({'; '.join(reasons)}): allow "
        "user namespaces (`sysctl user.max_user_namespaces=10000`) or Landlock (Linux 5.13 or "
        "newer, `lsm=…,landlock`), or verify on another machine"
    )


def _forget() -> None:
    """In a forked child: the processes are the parent's."""
    global _lock
    _lock = threading.Lock()
    for sandbox in _open.values():
        sandbox.disown()
    _open.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(close_sandbox)
