"""Runs generated programs with their tests, each in a process of its own that limits itself (`child.py`).

Limits are CPU time, since a busy machine may not decide a verdict:

    it computes longer than the limit      wrong
    its threads sleep as long as that      wrong: it waits
    it gets no processor for ten times     run again, then no verdict
"""

import functools
import importlib.util
import marshal
import math
import os
import select
import signal
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import SandboxError
from evaluation.processes import end_group
from evaluation.verification.sandbox.filter import ELSE, NO_SANDBOX, compiled_filter
from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests

Kind = Literal["seccomp", "none"]

_CHILD = Path(__file__).with_name("child.py")
_OPTIONS = ("-S", "-s", "-P", "-B", "-X", "utf8")
"""Python without packages. `-I` would also ignore PYTHONHASHSEED, on which the order of sets depends."""
_PASSED_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")
"""Variables that an interpreter may need to start."""
_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",  # each heap of another thread takes 64 MB of the address space
}
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")

_START_SECONDS = 0.5
"""CPU time that starting Python may take beside the program's."""
_PATIENCE = 10.0
"""In wall-clock time, a busy machine may take this many times the limit of CPU time."""
_ATTEMPTS = 2
_TICK = 0.1
_BEGUN, _MOST_REPORT = b"begin\n", 1 << 16

_COMPUTED, _WAITED = "it ran out of time", "it waited"
_STARVED = "the machine was too busy to let it compute"
_CLOSED = "it closed its report"
"""Why a program was stopped."""

_TRIED = """
import importlib
for name in "bz2 ctypes decimal hashlib lzma socket sqlite3 ssl zlib".split():
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:  # an interpreter built without it
        pass
def double(x):
    return x + x
"""
"""A right program, which needs the libraries that Python is linked with."""

_kind: Kind = "seccomp"


def use(kind: Kind) -> None:
    """Run this process's programs in a sandbox (`seccomp`), or with only limits (`none`)."""
    global _kind
    _kind = kind


def describe_sandbox(kind: Kind | None = None) -> str:
    """Return what confines programs: `seccomp`, `landlock+seccomp` or `none`.

    Raises:
        SandboxError: When this machine has no seccomp.
    """
    confinement = _confinement(kind or _kind)
    parts = ["landlock"] * bool(confinement["readable"]) + ["seccomp"] * bool(confinement["filter"])
    return "+".join(parts) or "none"


def most_seconds(seconds: float) -> float:
    """Return how many seconds of wall-clock time a program can take."""
    return _ATTEMPTS * _PATIENCE * (seconds + _START_SECONDS)


def run_program(program: str, tests: Tests, limits: Limits) -> ProgramVerdict:
    """Run a program with its tests in a process of its own, and leave nothing behind.

    Raises:
        SandboxError: When this machine has no seccomp, and `use` was not told to do without.
    """
    return _run(program, tests, limits, _confinement(_kind))


@functools.cache
def _confinement(kind: Kind) -> dict[str, Any]:
    """Return the filter and the readable paths with which a right program passes here."""
    if kind == "none":
        return {"filter": b"", "readable": []}
    tests, reason = Tests(asserts=("assert double(2) == 4",)), ""
    for readable in (_readable(), []):  # where Landlock hides what Python needs, do without
        confinement = {"filter": compiled_filter(), "readable": readable}
        verdict = _run(_TRIED, tests, Limits(seconds=60), confinement)
        if verdict.passed:
            return confinement
        reason = verdict.reason
    raise SandboxError(f"{NO_SANDBOX}: a right program fails ({reason}){ELSE}")


def _readable() -> list[str]:
    """Return the paths that Landlock lets programs read; none where the kernel has no Landlock."""
    import ctypes

    if ctypes.CDLL(None).syscall(444, None, ctypes.c_long(0), ctypes.c_long(1)) < 1:
        return []
    folder = Path(_packages())
    variable = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    paths = {*_LIBRARIES, *variable, sys.base_prefix, sys.base_exec_prefix}
    paths |= {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    paths |= {str(folder / "numpy"), str(folder / "numpy.libs")}
    return sorted(path for path in paths if path and os.path.exists(path))


@functools.cache
def _packages() -> str:
    numpy = importlib.util.find_spec("numpy")
    return str(Path(numpy.origin).parent.parent) if numpy and numpy.origin else "/nonexistent"


def _run(program: str, tests: Tests, limits: Limits, confinement: dict[str, Any]) -> ProgramVerdict:
    job = {
        "program": program.encode("utf-8", "surrogatepass"),
        "tests": [*tests.asserts] or [tests.source],
        "listed": bool(tests.asserts),
        "setup": tests.setup,
        "entry_point": tests.entry_point,
        "memory_mb": limits.memory_mb,
        "cpu_seconds": math.ceil(limits.seconds + _START_SECONDS) + 1,
        "parent": os.getpid(),
        "packages": _packages(),
        **confinement,
    }
    data, verdict = marshal.dumps(job), ProgramVerdict(None)
    for _ in range(_ATTEMPTS):
        try:
            lines, ending = _process(data, limits.seconds)
        except OSError as reason:
            return ProgramVerdict(None, f"no process could be started: {reason}")
        verdict = _verdict(lines, ending, tests, limits)
        if ending != _STARVED:
            break
    return verdict


def _process(data: bytes, seconds: float) -> tuple[list[str], int | str]:
    """Run a job; return the lines of its report, and its exit code or why it was stopped."""
    passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    with open(os.memfd_create("job"), "w+b") as job:
        job.write(data)
        job.seek(0)
        process = subprocess.Popen(
            [sys.executable, *_OPTIONS, _CHILD],
            env=_VARIABLES | passed,
            cwd="/",
            stdin=job,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    assert process.stdout is not None
    ending: int | str = _CLOSED
    with process.stdout as reading:
        try:
            report, stopped = _follow(process.pid, reading.fileno(), seconds)
            with suppress(subprocess.TimeoutExpired):
                ending = stopped or process.wait(1)
        finally:
            end_group(process)
    return report.decode("utf-8", "replace").splitlines(), ending


def _follow(process: int, reading: int, seconds: float) -> tuple[bytes, str]:
    """Read the report until the program closes it or reaches a limit; return it, and which one."""
    report, asleep, waited, most = b"", 0.0, 0.0, seconds + _START_SECONDS
    ready = select.poll()
    ready.register(reading, select.POLLIN)
    last = time.monotonic()
    while True:
        is_ready = ready.poll(1000 * _TICK)
        now = time.monotonic()
        tick, last = min(now - last, 2 * _TICK), now  # a machine that stood still counts for little
        if is_ready:
            if not (part := os.read(reading, _MOST_REPORT)):
                return report, ""
            report += part
            report = report[: len(_BEGUN)] + report[len(_BEGUN) :][-_MOST_REPORT:]
        waited += tick
        if time.clock_gettime((~process << 3) | 2) > most:  # its CPU time: clock_getcpuclockid(3)
            return report, _COMPUTED
        asleep += tick if not is_ready and _sleeps(process) else 0.0
        if asleep > seconds:
            return report, _WAITED
        if waited > _PATIENCE * most:
            return report, _STARVED


def _sleeps(process: int) -> bool:
    """Return whether all threads of a process sleep: none runs, waits for a processor or for a disk."""
    folder = f"/proc/{process}/task"
    try:
        states = [Path(folder, thread, "stat").read_bytes() for thread in os.listdir(folder)]
    except OSError:  # it ends just now
        return False
    return all(state.rpartition(b") ")[2].startswith(b"S") for state in states)


def _verdict(lines: list[str], ending: int | str, tests: Tests, limits: Limits) -> ProgramVerdict:
    last = lines[-1] if lines else ""
    what, _, reason = last.partition(" ")
    numbers = [int(line) for line in lines if line.isdecimal() and len(line) < 10]
    known = numbers and numbers[-1] < len(tests.asserts)
    where = f" in `{' '.join(tests.asserts[numbers[-1]].split())[:240]}`" if known else ""
    begun = lines[:1] == ["begin"]  # from here on, the program may have written the rest
    if what == "refused" and not begun:
        raise SandboxError(f"{NO_SANDBOX}: the kernel refuses the filter ({reason}){ELSE}")
    if ending in (_COMPUTED, _WAITED) or ending == -signal.SIGXCPU:
        how = ending if ending == _WAITED else _COMPUTED
        return ProgramVerdict(False, f"{how} ({limits.seconds:g} s){where}")
    if ending == _STARVED:
        return ProgramVerdict(None, f"{ending} ({limits.seconds:g} s){where}")
    if last == "end":
        return ProgramVerdict(True)
    if what == "wrong":
        return ProgramVerdict(False, reason)
    if what == "unusable" and not begun:
        return ProgramVerdict(None, f"the tests cannot be run: {reason}")
    if not lines or ending == -signal.SIGKILL:  # what the program itself does ends otherwise
        return ProgramVerdict(None, f"its process was ended by another one (exit code {ending})")
    ended = f"exit code {ending}" if isinstance(ending, int) else ending
    if isinstance(ending, int) and ending < 0:
        ended = f"signal {signal.Signals(-ending).name}"
    return ProgramVerdict(False, f"the tests ended before the last one{where} ({ended})")
