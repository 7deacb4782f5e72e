"""Runs attempts in the sandbox, and reports: `python -m tests.verification.sandbox.arena MODE`."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from evaluation.verification.sandbox.model import Limits, Tests
from evaluation.verification.sandbox.run import close_sandbox, describe_sandbox, run_program
from tests.tables import table

MARK = "sandbox-escape"
"""Begins the name of every file that an attempt leaves."""

SYSCALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({call}) >= 0:
    return "escaped"
"""


@dataclass(frozen=True)
class Attempt:
    """A program, and tests that it may not pass; many are harmless enough to work unsandboxed."""

    name: str
    program: str
    asserts: list[str]
    seconds: float
    memory_mb: int = 512
    given: str = ""
    works_unsandboxed: bool = False


def attempts() -> Iterator[Attempt]:
    """Each gives "escaped" where it gets through; what raises there is stopped."""
    for name, known in table("verification/sandbox/attempts")["attempts"].items():
        fields = {"asserts": ["assert f() == 'escaped'"], "seconds": 10, **known}
        body = fields.pop("body", None) or SYSCALL.replace("{call}", fields.pop("syscall"))
        yield Attempt(name, "def f():\n" + textwrap.indent(body, "    "), **fields)


def pretences() -> Iterator[Attempt]:
    for name, known in table("verification/sandbox/attempts")["pretences"].items():
        asserts = ["assert f(3) == 4", "assert f(4) == 5"]
        yield Attempt(name, **{"asserts": asserts, "seconds": 2, **known})


KINDS = {"attempts": [*attempts()], "pretences": [*pretences()]}

_ADOPT = 36
_LEFT_IN = ("/dev/shm", "/tmp", "/var/tmp", os.path.dirname(os.__file__))


class Arena:
    """A folder with a secret, a process, and a program that listens."""

    def __init__(self, stack: ExitStack) -> None:
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
        os.environ["EVAL_SECRET"] = "secret"
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="arena")))
        for name in ("secret.txt", "precious.txt"):
            (self.folder / name).write_text(name)
        os.chmod(self.folder / "secret.txt", 0o600)
        self.victim = stack.enter_context(_victim())
        self.port, self._heard = 0, [0]
        self._listen(stack)
        self._unchanged = self._state()

    def _listen(self, stack: ExitStack) -> None:
        servers = [socket.create_server(("127.0.0.1", 0))]
        self.port = servers[0].getsockname()[1]
        for address in (f"{self.folder}/socket", f"\0sandbox-{self.port}"):
            server = socket.socket(socket.AF_UNIX)
            server.bind(address)
            server.listen()
            servers.append(server)
        for server in servers:
            stack.enter_context(server)

    def fill_in(self, text: str) -> str:
        values = {"folder": self.folder, "victim": self.victim, "port": self.port}
        for name, value in {**values, "parent": os.getpid()}.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def run(self, attempt: Attempt, mode: str) -> dict[str, Any]:
        limits = Limits(seconds=attempt.seconds, memory_mb=attempt.memory_mb)
        tests = Tests(asserts=tuple(attempt.asserts), given=attempt.given)
        program = self.fill_in(attempt.program)
        outcome = run_program(program, tests, limits, modes=[mode])
        return {"passed": outcome.passed, "reason": outcome.reason, "left": self.left()}

    def left(self) -> list[str]:
        """What is not as it was: files, processes, shared segments."""
        left = [path for folder in _LEFT_IN for path in _marked(folder)]
        if self._state() != self._unchanged:
            left.append("the folder is changed")
        strays = descendants(os.getpid()) - {self.victim}
        if len(strays) > 2:  # the starter and the zygote
            left.append(f"{len(strays) - 2} processes")
        segments = [Path(f"/proc/sysvipc/{kind}").read_bytes() for kind in ("shm", "msg")]
        if b"212220362" in b"".join(segments):
            left.append("a shared segment")
        return left

    def _state(self) -> list[tuple[Any, ...]]:
        entries = sorted(self.folder.iterdir())
        states = [(path.name, path.lstat()) for path in entries]
        files = [(name, s.st_mode, s.st_uid, s.st_size, s.st_mtime_ns) for name, s in states]
        priority = os.getpriority(os.PRIO_PROCESS, self.victim)
        return [*files, (psutil.Process(self.victim).status(), priority)]


@contextmanager
def _victim() -> Iterator[int]:
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)  # whoever ends us
    process = subprocess.Popen(["sleep", "10000"], **streams)  # waits for ours alone
    while psutil.Process(process.pid).status() != "sleeping":  # it begins by running
        time.sleep(0.01)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _marked(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(MARK)]


def descendants(process: int) -> set[int]:
    return {child.pid for child in psutil.Process(process).children(recursive=True)}


def of_session(session: int) -> set[int]:
    """The processes of a session that are not dead."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
    return found


def main(mode: str, kinds: list[str]) -> dict[str, Any]:
    chosen = [attempt for kind in kinds for attempt in KINDS[kind]]
    watchdog = threading.Timer(900, os._exit, (3,))
    watchdog.daemon = True
    watchdog.start()
    with ExitStack() as stack:
        arena = Arena(stack)
        results: dict[str, Any] = {
            "sandbox": describe_sandbox(modes=[mode]),
            "user": os.getuid(),
        }
        results["outcomes"] = {attempt.name: arena.run(attempt, mode) for attempt in chosen}
        close_sandbox()
        results["processes left"] = len(descendants(os.getpid()) - {arena.victim})
    return results


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:] or ["attempts", "pretences"])))
