"""System calls that Python has no function for.

Nothing here may import anything outside the standard library: the sandbox's own interpreter starts
without the packages of the environment.
"""

import ctypes
import os
from ctypes import c_char_p, c_int, c_uint32, c_ulong
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)

PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
_MOST_HEAPS = -8  # M_ARENA_MAX of mallopt(3)
_CAPABILITY_VERSION = 0x20080522
_MOST_CAPABILITIES = 64


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", c_char_p)]


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({what})")
    return result


def prctl(option: int, *values: int) -> None:
    """Call prctl(2); missing arguments are 0."""
    numbers = [c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _checked(_LIBC.prctl(c_int(option), *numbers), f"prctl {option}")


def unshare(flags: int) -> None:
    """Call unshare(2): move this process into new namespaces."""
    _checked(_LIBC.unshare(c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Call mount(2); source and kind are empty for none."""
    texts = [text.encode() or None for text in (source, target, kind, data)]
    result = _LIBC.mount(*map(c_char_p, texts[:3]), c_ulong(flags), c_char_p(texts[3]))
    _checked(result, f"mount on {target}")


def make_root(folder: str) -> None:
    """Make a mount point the root; the former root becomes unreachable."""
    detach = 2
    os.chdir(folder)
    _checked(_LIBC.pivot_root(c_char_p(b"."), c_char_p(b".")), "pivot_root")
    _checked(_LIBC.umount2(c_char_p(b"."), c_int(detach)), "umount of the former root")
    os.chdir("/")


def syscall(number: int, *values: Any) -> int:
    """Make a system call by a number that is equal on all machines; raise OSError if it fails."""
    return _checked(_LIBC.syscall(c_ulong(number), *values), f"system call {number}")


def share_one_heap() -> None:
    """Let all threads use one heap: each of glibc's other heaps takes 64 MB of the address space."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(c_int(_MOST_HEAPS), c_int(1))


def drop_capabilities() -> None:
    """Drop all capabilities (of root or a namespace) of this process and its children."""
    for capability in range(_MOST_CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # no such capability, or not permitted
            continue
    header = (c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_LIBC.capset(header, (c_uint32 * 6)()), "capset")


def install_filter(program: bytes) -> None:
    """Permanently install a compiled seccomp filter in this process."""
    loaded = _Filter(len(program) // 8, program)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(loaded))
