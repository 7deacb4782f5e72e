"""The caller's end of a cage: starts its processes and hands them program after program."""

import importlib.util
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import evaluation
from evaluation.errors import CageError
from evaluation.verification.cage.model import Limits, Outcome, Tests
from evaluation.verification.cage.peer import GONE
from evaluation.verification.cage.reasons import shortened
from evaluation.verification.cage.syscalls import compiled_filter
from evaluation.verification.cage.zygote import ENDING, JOB, READY, WAIT_FACTOR

_START_SECONDS = 60.0
_END_SECONDS = 5.0
_SLACK_SECONDS = 20.0
"""How much later than the time limit the zygote itself is given up."""
_MOST_VERDICT = 1 << 20
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")
"""What an interpreter may need to start at all; gone before the first program."""
_START = """
import sys
sources, mode, *numbers = sys.argv[1:3], *sys.argv[3:]
sys.path += sources
from evaluation.verification.cage.zygote import start
start(mode, sources, *map(int, numbers))
"""


class Cage:
    """A zygote and the connection to it."""

    def __init__(self, mode: str) -> None:
        """Raises CageError with the reason where the machine does not offer this cage."""
        self.mode = mode
        filter_descriptor = _memory_file(compiled_filter())
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            handed = (theirs.fileno(), filter_descriptor)
            self._process = _start(mode, handed)
        finally:
            theirs.close()
            os.close(filter_descriptor)
        self._connection = ours
        ours.settimeout(_START_SECONDS)
        try:
            answer = ours.recv(1000)
        except OSError as reason:
            answer = str(reason).encode()
        if answer != READY:
            self.close()
            raise CageError(f"{mode}: {answer.decode(errors='replace') or 'it does not start'}")

    def close(self) -> None:
        self._connection.close()  # at which the zygote ends, and the starter after it
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def disown(self) -> None:
        """Leaves it to the process that this one was forked from."""
        self._connection.close()
        self._process.returncode = 0  # not ours to wait for

    @property
    def is_open(self) -> bool:
        return self._process.poll() is None and self._connection.fileno() >= 0

    def check(self) -> None:
        """Raises CageError if not even this passes: some call that is needed is forbidden here."""
        program = "import colorsys\ndef double(x):\n    return x + x"
        tests = Tests(asserts=("assert double([1.5, 'a']) == [1.5, 'a', 1.5, 'a']",))
        outcome = self.run(program, tests, Limits(seconds=30, memory_mb=256))
        if not (outcome.passed and self.is_open):
            self.close()
            raise CageError(f"{self.mode}: a program that is right fails ({outcome.reason})")

    def run(self, program: str, tests: Tests, limits: Limits) -> Outcome:
        source = program.encode("utf-8", "surrogatepass")
        reading, writing = os.pipe()
        files = [_memory_file(source), _memory_file(tests.to_bytes())]
        try:
            job = JOB.pack(limits.seconds, limits.memory_mb)
            try:
                socket.send_fds(self._connection, [job], [*files, writing])
            except OSError as reason:
                raise self._ended() from reason
            finally:
                for descriptor in (*files, writing):
                    os.close(descriptor)
            verdict, ending = self._follow(reading, limits)
        except BaseException:  # else the next program would be told this one's end
            self.close()
            raise
        finally:
            os.close(reading)
        if not ending and not verdict.endswith(b"}\n"):
            raise self._ended()
        return _outcome(verdict, ending, tests, limits)

    def _ended(self) -> CageError:
        self.close()
        return CageError(
            f"the cage of generated programs ({self.mode}) ended unasked: the machine may be out "
            "of memory; verify again, with fewer programs at a time"
        )

    def _follow(self, reading: int, limits: Limits) -> tuple[bytes, bytes]:
        """What the judge writes until the zygote tells that all is over."""
        deadline = time.monotonic() + WAIT_FACTOR * limits.seconds + _SLACK_SECONDS
        verdict, zygote = bytearray(), self._connection.fileno()
        sources = [reading, zygote]
        while True:
            left = deadline - time.monotonic()
            ready = select.select(sources, [], [], max(left, 0))[0]
            if reading in ready:
                part = os.read(reading, 1 << 16)
                verdict += part[: _MOST_VERDICT - len(verdict)]
                if not part:
                    sources.remove(reading)
            elif zygote in ready:
                try:
                    ending = self._connection.recv(ENDING.size)
                except ConnectionError:  # it was killed before it took the job
                    break
                if len(ending) == ENDING.size:
                    return bytes(verdict), ending
                break
            elif left <= 0:
                break
        self.close()
        return bytes(verdict), b""


def _start(mode: str, handed: tuple[int, int]) -> "subprocess.Popen[bytes]":
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    variables |= {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    arguments = (*_sources(), mode, os.getpid(), *handed)
    return subprocess.Popen(
        [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", _START, *map(str, arguments)],
        env=variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=handed,
        start_new_session=True,
    )


def _sources() -> tuple[Path, Path]:
    """Where the cage's own code and numpy are imported from, before it is entered."""
    root = Path(evaluation.__file__).resolve().parent.parent
    numpy = importlib.util.find_spec("numpy")
    return root, Path(numpy.origin).parent.parent if numpy and numpy.origin else root


def _memory_file(data: bytes) -> int:
    descriptor = os.memfd_create("cage", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    return descriptor


def _outcome(verdict: bytes, ending: bytes, tests: Tests, limits: Limits) -> Outcome:
    """Only the judge's last line, written after all tests, can say that the program passed."""
    lines = verdict.splitlines() or [b""]
    last = lines[-1]
    timed_out, judge, candidate = ENDING.unpack(ending) if ending else (True, 0, 0)
    outcome = Outcome.from_bytes(last) if last.startswith(b"{") and verdict[-1:] == b"\n" else None
    if outcome is not None and (outcome.passed or not timed_out):
        return _with_cause(outcome, candidate)
    number = next((int(line) for line in reversed(lines) if line.isdigit()), -1)
    where = f" in `{shortened(tests.asserts[number])}`" if 0 <= number < len(tests.asserts) else ""
    if timed_out:
        return Outcome(False, f"it ran out of time ({limits.seconds:g} s){where}")
    return Outcome(False, f"the tests ended before the last one{where}{_cause(judge)}")


def _with_cause(outcome: Outcome, candidate: int) -> Outcome:
    if outcome.passed or GONE not in outcome.reason:
        return outcome
    return replace(outcome, reason=outcome.reason + _cause(candidate))


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f" (signal {signal.Signals(os.WTERMSIG(status)).name})"
    return f" (exit code {os.WEXITSTATUS(status)})"
