"""Runs programs in the strongest sandbox that the machine offers, and reuses it for the next one.

A program is verified by two runs: a plain one and, if it passes that, a guarded one.

    plain   guarded                     verdict
    fails   (not run)                   fails
    passes  passes                      passes
    passes  cannot check all values     passes, and is counted as unguarded
    passes  fails                       fails, and is counted as forged

If the tests themselves cannot be run, or the machine is too busy, there is no verdict.
"""

import atexit
import json
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evaluation.errors import SandboxError
from evaluation.escaping import without_surrogates
from evaluation.verification.sandbox import candidate
from evaluation.verification.sandbox.channel import ENDED
from evaluation.verification.sandbox.connection import RunReport, Sandbox
from evaluation.verification.sandbox.model import (
    FORGED,
    UNGUARDED,
    Limits,
    ProgramVerdict,
    Tests,
    Use,
)
from evaluation.verification.sandbox.needs import use_of
from evaluation.verification.sandbox.reasons import shortened
from evaluation.verification.sandbox.syscalls import compiled_filter
from evaluation.verification.sandbox.zygote import COMPUTED, PATIENCE, STARVED, WAITED

MODES = ("namespaces", "landlock")
"""Kinds of sandbox, the strongest first; each also has the seccomp filter and the limits."""

_lock = threading.Lock()
_open: dict[tuple[int, str], Sandbox] = {}
"""The sandboxes of this process, by process id and mode; a forked process starts with none."""
_GUARDED_FACTOR = 3.0
_GUARDED_SECONDS = 5.0
"""The guarded run gets this much more time, as sending values between processes takes time."""


def run_program(
    program: str, tests: Tests, limits: Limits, *, modes: Sequence[str] = MODES
) -> ProgramVerdict:
    """Run the tests against a program in the strongest sandbox that the machine offers.

    Args:
        limits: Limits of each process of the plain run; the guarded run has more time.

    Raises:
        SandboxError: When the machine offers none of the kinds.
    """
    with _lock:
        try:
            return _run_twice(_sandbox(modes), program, tests, limits)
        except SandboxError:  # it ended, perhaps before this program: use a new one
            return _run_twice(_sandbox(modes), program, tests, limits)


def describe_sandbox(*, modes: Sequence[str] = MODES) -> str:
    """Return the name of the sandbox that `run_program` uses, such as `namespaces+seccomp`."""
    with _lock:
        return f"{_sandbox(modes).mode}+seccomp"


def close_sandbox() -> None:
    """End the sandbox processes, which wait for the next program."""
    with _lock:
        for sandbox in _open.values():
            sandbox.close()
        _open.clear()


def _sandbox(modes: Sequence[str]) -> Sandbox:
    compiled_filter()  # every kind of sandbox needs it
    reasons = []
    for mode in modes:
        sandbox = _open.get((os.getpid(), mode))
        if sandbox is not None and sandbox.is_open:
            return sandbox
        if sandbox is not None:  # it was killed
            sandbox.close()
        try:
            sandbox = Sandbox(mode)
            _check(sandbox)
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
    """In a forked child, forget the sandboxes: they belong to the parent."""
    global _lock
    _lock = threading.Lock()
    for sandbox in _open.values():
        sandbox.disown()
    _open.clear()


def most_seconds(seconds: float) -> float:
    """Return how many seconds of wall-clock time both runs of a program can take."""
    return PATIENCE * (seconds + _GUARDED_FACTOR * seconds + _GUARDED_SECONDS)


def _run_twice(sandbox: Sandbox, program: str, tests: Tests, limits: Limits) -> ProgramVerdict:
    """Verify a program by both runs; raise SandboxError if the sandbox ends unexpectedly."""
    use = use_of(tests)  # before the program starts
    source = program.encode("utf-8", "surrogatepass")
    outcome, at_fault = _plainly(sandbox, source, tests, use, limits)
    if use.needs and outcome.passed is not None and not at_fault:
        return replace(outcome, note=UNGUARDED)
    if not (outcome.passed or at_fault):
        return outcome
    wider = replace(limits, seconds=_GUARDED_FACTOR * limits.seconds + _GUARDED_SECONDS)
    data = b"[]\n" if use.needs else candidate.to_bytes(source, tests.setup)
    report = sandbox.run(data, tests, use, wider, guarded=True)
    guarded = _guarded(report, tests, wider)
    if at_fault and guarded.passed is not None:
        return replace(outcome, note=UNGUARDED if use.needs else "")
    return guarded


def _check(sandbox: Sandbox) -> None:
    """Run a correct program; if it fails, this sandbox forbids a system call that Python needs."""
    program = "import colorsys\ndef double(x):\n    return x + x"
    tests = Tests(asserts=("assert double([1.5, 'a']) == [1.5, 'a', 1.5, 'a']",))
    outcome = _run_twice(sandbox, program, tests, Limits(seconds=30, memory_mb=256))
    if not (outcome.passed and sandbox.is_open):
        sandbox.close()
        raise SandboxError(f"{sandbox.mode}: a program that is right fails ({outcome.reason})")


def _plainly(
    sandbox: Sandbox, program: bytes, tests: Tests, use: Use, limits: Limits
) -> tuple[ProgramVerdict, bool]:
    """Return the plain run's verdict, and whether the tests themselves may be at fault."""
    report = sandbox.run(program, tests, use, limits, guarded=False)
    if report.passed:
        return ProgramVerdict(True), False
    if (ended := _cut_short(report, tests, limits)) is not None:
        return ended, False
    failure = _failure(report.lines[-1:])
    if not failure:
        return ProgramVerdict(False, _ended_early(report, tests)), False
    reason = without_surrogates(str(failure["reason"]))
    return ProgramVerdict(False, reason), failure.get("at_fault") is True


def _failure(lines: list[bytes]) -> dict[str, Any]:
    """Return the failure that the last line reports; empty if the program wrote something else."""
    try:
        failure = json.loads(lines[0])
        return failure if "reason" in failure else {}
    except (IndexError, ValueError, TypeError, RecursionError):
        return {}


def _guarded(report: RunReport, tests: Tests, limits: Limits) -> ProgramVerdict:
    last = report.lines[-1] if report.lines else b""
    if last.startswith(b"{") and last.endswith(b"}\n"):
        fields = json.loads(last)
        reason = without_surrogates(fields["reason"])
        outcome = ProgramVerdict(fields["passed"], reason, fields["note"])
        if outcome.passed is False and ENDED in outcome.reason:
            return replace(outcome, reason=outcome.reason + _cause(report.candidate))
        return outcome
    if (ended := _cut_short(report, tests, limits)) is not None:
        return ended if ended.passed is None else replace(ended, note=FORGED)
    return ProgramVerdict(False, _ended_early(report, tests), FORGED)


def _ended_early(report: RunReport, tests: Tests) -> str:
    return f"the tests ended before the last one{_where(report, tests)}{_cause(report.status)}"


def _cut_short(report: RunReport, tests: Tests, limits: Limits) -> ProgramVerdict | None:
    """Return the verdict of a run that was stopped at a limit; None for any other."""
    where = _where(report, tests)
    if report.ending == STARVED:
        reason = f"the machine was too busy to let it compute for {limits.seconds:g} s{where}"
        return ProgramVerdict(None, reason)
    if report.ending == COMPUTED:
        return ProgramVerdict(False, f"it ran out of time ({limits.seconds:g} s){where}")
    if report.ending == WAITED:
        return ProgramVerdict(False, f"it waited for {limits.seconds:g} s{where}")
    return None


def _where(report: RunReport, tests: Tests) -> str:
    number = next((int(line) for line in reversed(report.lines) if line.strip().isdigit()), -1)
    return f" in `{shortened(tests.asserts[number])}`" if 0 <= number < len(tests.asserts) else ""


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f" (signal {signal.Signals(os.WTERMSIG(status)).name})"
    return f" (exit code {os.WEXITSTATUS(status)})"


os.register_at_fork(after_in_child=_forget)
atexit.register(close_sandbox)
