"""The caller's end of a sandbox: starts its processes and sends them one program after another."""

import importlib.util
import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import evaluation
from evaluation.errors import SandboxError
from evaluation.verification.sandbox.model import Limits, Tests, Use
from evaluation.verification.sandbox.plain_run import END, SECRET_BYTES
from evaluation.verification.sandbox.syscalls import compiled_filter
from evaluation.verification.sandbox.zygote import ENDING, JOB, PATIENCE, READY

_START_SECONDS = 60.0
_END_SECONDS = 5.0
_SLACK_SECONDS = 20.0
"""Seconds after the time limit until the zygote itself is considered dead."""
_MOST_OUTPUT = 1 << 20
_PASSED_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")
"""Variables that an interpreter may need to start; removed before the first program runs."""
_OPTIONS = ("-S", "-s", "-P", "-B", "-X", "utf8")
_START = """
import sys
sources, mode, *numbers = sys.argv[1:3], *sys.argv[3:]
sys.path += sources
from evaluation.verification.sandbox.zygote import start
start(mode, sources, *map(int, numbers))
"""


@dataclass(frozen=True)
class RunReport:
    """A run's result: whether a plain run passed, its lines, how it ended, and the wait statuses."""

    passed: bool
    lines: list[bytes]
    ending: int
    status: int
    candidate: int


class Sandbox:
    """A zygote and the connection to it.

    Args:
        mode: Kind of sandbox, one of `run.MODES`.

    Raises:
        SandboxError: When the machine does not offer this sandbox; states the reason.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        filter_descriptor = _memory_file(compiled_filter())
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = _start(mode, (theirs.fileno(), filter_descriptor))
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
            raise SandboxError(f"{mode}: {answer.decode(errors='replace') or 'it does not start'}")

    def close(self) -> None:
        """End the sandbox's processes."""
        self._connection.close()  # makes the zygote end, then the starter
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def disown(self) -> None:
        """Detach from the sandbox without ending it: it belongs to the parent of this forked process."""
        self._connection.close()
        self._process.returncode = 0  # only the parent can wait for it

    @property
    def is_open(self) -> bool:
        """Whether the sandbox can take another program."""
        return self._process.poll() is None and self._connection.fileno() >= 0

    def run(
        self, program: bytes, tests: Tests, use: Use, limits: Limits, *, guarded: bool
    ) -> RunReport:
        """Run a program once with its tests; return the output and how it ended.

        Args:
            program: The program, as UTF-8; in the guarded run the result of `candidate.to_bytes`.
        """
        reading, output_end = os.pipe()
        secret_end, writing = os.pipe()
        files = [
            _memory_file(program),
            _memory_file(json.dumps([asdict(tests), asdict(use)]).encode()),
        ]
        try:
            job = JOB.pack(limits.seconds, limits.memory_mb, guarded)
            try:
                socket.send_fds(self._connection, [job], [*files, output_end, secret_end])
            except OSError as reason:
                raise self._ended() from reason
            finally:
                for descriptor in (*files, output_end, secret_end):
                    os.close(descriptor)
            return self._follow(reading, writing, limits)
        except BaseException:  # otherwise the next program would receive this one's ending
            self.close()
            raise
        finally:
            os.close(reading)
            os.close(writing)

    def _ended(self) -> SandboxError:
        self.close()
        return SandboxError(
            f"the sandbox of generated programs ({self.mode}) ended unexpectedly: the machine may be out "
            "of memory; verify again, with fewer programs at a time"
        )

    def _follow(self, reading: int, writing: int, limits: Limits) -> RunReport:
        """Collect the output until the zygote reports the end."""
        deadline = time.monotonic() + PATIENCE * limits.seconds + _SLACK_SECONDS
        output, zygote = bytearray(), self._connection.fileno()
        secret, sources = b"", [reading, zygote]
        while True:
            left = deadline - time.monotonic()
            ready = select.select(sources, [], [], max(left, 0))[0]
            if reading in ready:
                part = os.read(reading, 1 << 16)
                output += part[: _MOST_OUTPUT - len(output)]
                if not part:
                    sources.remove(reading)
                if not secret and output.endswith(b"\n" + END + b"\n"):
                    secret = _send_secret(writing)
            elif zygote in ready:
                try:
                    ending = self._connection.recv(ENDING.size)
                except ConnectionError:  # the zygote was killed before it took the job
                    break
                if len(ending) != ENDING.size:
                    break
                passed = bool(secret) and output.endswith(b"\n" + END + b"\n" + secret + b"\n")
                return RunReport(
                    passed, bytes(output).splitlines(keepends=True), *ENDING.unpack(ending)
                )
            elif left <= 0:
                break
        raise self._ended()


def _send_secret(writing: int) -> bytes:
    """Send a new secret, which the program cannot have known before its last test."""
    secret = os.urandom(SECRET_BYTES // 2).hex().encode()
    os.write(writing, secret)
    return secret


def _start(mode: str, inherited: tuple[int, int]) -> "subprocess.Popen[bytes]":
    variables = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    variables |= {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    arguments = (*_sources(), mode, os.getpid(), *inherited)
    return subprocess.Popen(
        [sys.executable, *_OPTIONS, "-c", _START, *map(str, arguments)],
        env=variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=inherited,
        start_new_session=True,
    )


def _sources() -> tuple[Path, Path]:
    """Return the folders from which the sandbox's code and numpy are imported before it is entered."""
    root = Path(evaluation.__file__).resolve().parent.parent
    numpy = importlib.util.find_spec("numpy")
    return root, Path(numpy.origin).parent.parent if numpy and numpy.origin else root


def _memory_file(data: bytes) -> int:
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    return descriptor
