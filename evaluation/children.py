"""Child processes: how they end with us, and with all that they have started; how much memory they get.

Imports nothing that has to be installed: the sandbox's own interpreter starts without the environment.
"""

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
    """Have the kernel kill this process when the thread that started it ends.

    It is killed whatever it is doing then.

    Args:
        parent: Id of the process that started it; if that has died already, this one ends now. None
            does not check.

    Raises:
        OSError: When the kernel refuses.
    """
    if _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: the parent's death cannot be watched")
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, with all that it has started there.

    Args:
        process: A child of ours; it is waited for.
    """
    with contextlib.suppress(ProcessLookupError):  # nothing of it is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def limit_memory(more: int) -> tuple[int, int]:
    """Limit how much more memory this process may have.

    Args:
        more: Bytes of address space beyond those that it has now.

    Returns:
        The limits (soft, hard) until here.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    most = min([pages * resource.getpagesize() + more, *known])
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    return soft, hard
