"""Child processes: ends them with this process or with all their children, and limits their memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before a fork, after which little is safe
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl(2); kept when another program is executed


def end_with_parent(parent: int | None = None) -> None:
    """Make the kernel kill this process when the thread that started it ends.

    The kernel kills it in any state, even if it hangs.

    Args:
        parent: Id of the process that started it; if that has already ended, this one exits now.
            None does not check.
    """
    if _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: the parent's death cannot be watched")
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a child that leads a session, and all its children in this session; wait for it."""
    with contextlib.suppress(ProcessLookupError):  # it has already ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def limit_memory(more: int) -> None:
    """Limit how many more bytes of memory this process may use than it does now."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
