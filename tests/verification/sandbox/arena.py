"""What a program may harm: a folder, a process, ports that listen; and whether anything is left of it."""

import os
import socket
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.tables import table

MARK = "sandbox-escape"
"""Begins the name of every file that an attempt leaves."""
_SYSCALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({call}) >= 0:
    return "escaped"
"""
_LEFT_IN = ("/dev/shm", "/tmp", "/var/tmp", "/")


@dataclass(frozen=True)
class Attempt:
    """A program that may not pass its test; many are harmless enough to be run unconfined."""

    name: str
    program: str
    test: str = "f() == 'escaped'"
    seconds: float = 10
    memory_mb: int = 512
    unconfined: bool = False


def _attempt(name: str, fields: dict[str, Any]) -> Attempt:
    body = fields.pop("body", None) or _SYSCALL.replace("{call}", fields.pop("syscall", ""))
    program = fields.pop("program", "def f():\n" + textwrap.indent(body, "    "))
    return Attempt(name, program, **fields)


ATTEMPTS = [_attempt(name, {**one}) for name, one in table("verification/sandbox/attempts").items()]


class Arena:
    def __init__(self, stack: ExitStack) -> None:
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="arena")))
        (self.folder / "precious.txt").write_text("precious")
        self.victim = stack.enter_context(_victim())
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = server.getsockname()[1]
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind(f"\0sandbox-{self.port}")
        named.listen()
        self._unchanged = self._state()
        self._before = descendants(os.getpid())  # with the victim

    def fill_in(self, text: str) -> str:
        for name in ("folder", "victim", "port"):
            text = text.replace("{" + name + "}", str(getattr(self, name)))
        return text

    def left(self) -> list[str]:
        """What is not as it was: files, processes, shared segments."""
        left = [name for folder in _LEFT_IN for name in os.listdir(folder) if MARK in name]
        if self._state() != self._unchanged:
            left.append("the folder or the process is changed")
        left += [f"process {child}" for child in descendants(os.getpid()) - self._before]
        if b"212220362" in Path("/proc/sysvipc/shm").read_bytes():
            left.append("a shared segment")
        return left

    def _state(self) -> list[object]:
        states = [(path.name, path.lstat()) for path in sorted(self.folder.iterdir())]
        files = [(name, s.st_mode, s.st_size, s.st_mtime_ns) for name, s in states]
        process = psutil.Process(self.victim)
        return [*files, process.status(), process.nice(), process.rlimit(psutil.RLIMIT_CPU)]


@contextmanager
def _victim() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "10000"])
    while psutil.Process(process.pid).status() != "sleeping":  # it begins by running
        time.sleep(0.01)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


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
