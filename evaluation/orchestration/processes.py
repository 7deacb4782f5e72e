"""Identifies a process by its id and start time: the system reuses ids."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process of some host; `started` is its start in clock ticks since the host booted."""

    host: str
    pid: int
    started: str

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this host."""
        return self.host == socket.gethostname()

    @property
    def alive(self) -> bool:
        """Whether it still runs; a process of another host is assumed to run."""
        return not self.is_here or _started(self.pid) == self.started


def process(pid: int | None = None) -> Process:
    """Return a process of this host; by default this process."""
    number = os.getpid() if pid is None else pid
    return Process(socket.gethostname(), number, _started(number))


def _started(pid: int) -> str:
    """Return when a process of this host started, in ticks since boot; empty if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]
