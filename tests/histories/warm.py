"""Commands as a user gives them, run by a warm server; the plain one is shared by all tests of a process."""

import atexit
import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.histories.server import CLIENT

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600.0

Ended = subprocess.CompletedProcess[str]

_kept = contextlib.ExitStack()
atexit.register(_kept.close)


@dataclass(frozen=True)
class Server:
    """A running server, by the path of its socket."""

    place: Path

    def run(self, arguments: Sequence[str], folder: Path, **variables: str) -> Ended:
        """`python <arguments>` in a folder; what is left of its process group is killed at the end."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
        environment |= {"HISTORIES_SOCKET": str(self.place)}
        command = [str(CLIENT), *arguments]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            how = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "process_group": 0}
            with subprocess.Popen(command, cwd=folder, env=environment, **how) as client:
                try:
                    code = client.wait(PATIENCE)
                finally:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(client.pid, signal.SIGKILL)
            said = [os.pread(file.fileno(), 1 << 30, 0).decode() for file in (out, err)]
        return subprocess.CompletedProcess(command, code, *said)


@contextlib.contextmanager
def server(*options: str) -> Iterator[Server]:
    """A server that ends with the block; `options` are those of its command line."""
    with tempfile.TemporaryDirectory(prefix="histories-") as folder:
        place = Path(folder) / "socket"
        command = [sys.executable, "-W", "ignore", "-m", "tests.histories.server", str(place)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([*command, *options], cwd=ROOT, text=True, **pipes) as process:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError(f"the server ended as it began: exit code {process.wait()}")
            yield Server(place)  # it ends when the block does, as its stdin is closed then


@functools.cache
def warm_server() -> Server:
    """Of this process, begun when it is first asked for."""
    return _kept.enter_context(server())


def run_python(
    arguments: Sequence[str], folder: Path, *, cold: bool = False, **variables: str
) -> Ended:
    """`python <arguments>` in a folder; `cold`: as a process of its own, whatever it takes."""
    if not cold:
        return warm_server().run(arguments, folder, **variables)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def python_words() -> list[str]:
    """What stands for `python` in a line of a shell."""
    return ["env", f"HISTORIES_SOCKET={warm_server().place}", str(CLIENT)]


def well(done: Ended) -> Ended:
    """What has ended with exit code 0."""
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done


def run_shell(line: str, folder: Path, **variables: str) -> Ended:
    """A line of bash in a folder, without standard input."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 30.0) -> None:
    """Waits until something is true; raises TimeoutError naming it."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)
