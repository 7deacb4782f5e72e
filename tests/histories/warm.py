"""Commands as a user gives them, in a plain server that all tests of a process share.

With EVAL_COLD=1 each is a process of its own, which takes seconds more.
"""

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.histories.runner import ROOT, Server, server
from tests.histories.server import CLIENT

_kept = contextlib.ExitStack()
_servers: dict[int, Server] = {}
atexit.register(_kept.close)


def run_python(
    arguments: Sequence[str], folder: Path, *, cold: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`python <arguments>` in a folder; `cold`: as a process of its own, whatever it takes."""
    command = [sys.executable, *arguments]
    variables = {"PYTHONPATH": str(ROOT), **variables}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if cold or os.environ.get("EVAL_COLD"):
            environment = {**os.environ, **variables}
            code = subprocess.run(
                command, cwd=folder, env=environment, stdout=out, stderr=err, check=False
            ).returncode
        else:
            code = warm_server().call(folder, arguments, variables, (out, err))
        said = [os.pread(file.fileno(), 1 << 30, 0).decode() for file in (out, err)]
    return subprocess.CompletedProcess(command, code, *said)


def python_words(*, cold: bool = False) -> list[str]:
    """What stands for `python` in a line of a shell: a fork of the server, or `cold` Python itself."""
    if cold or os.environ.get("EVAL_COLD"):
        return [sys.executable]
    return ["env", f"HISTORIES_SOCKET={warm_server().place}", str(CLIENT)]


def well(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """What has ended with exit code 0."""
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done


def run_shell(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
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


def warm_server() -> Server:
    """Of this process, begun when it is first asked for."""
    if os.getpid() not in _servers:
        _servers[os.getpid()] = _kept.enter_context(server("--plain"))
    return _servers[os.getpid()]


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 30.0) -> None:
    """Waits until something is true; raises TimeoutError naming it."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)
