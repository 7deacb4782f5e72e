"""The system calls that a sandboxed program may make; every other one fails with "not permitted".

What is missing is the point: no sockets, no new processes or threads, no signals to others, no
files to write, no mounts, namespaces, keys, io_uring, bpf or ptrace. Memory beside the process's
own (pipes, memory files, shared segments) is missing too, as the memory limit does not count it.
"""

import errno
import functools
import os
import tempfile
from typing import Any

from evaluation.errors import SandboxError

_ALLOWED = """
    read readv pread64 write writev close fstat lseek dup dup2 dup3
    stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd
    getdents getdents64 statfs fstatfs fadvise64 poll ppoll select pselect6
    mmap munmap mprotect mremap madvise brk futex membarrier rseq set_robust_list
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait
    sigaltstack pause alarm getitimer setitimer restart_syscall
    clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage
    getrandom uname sysinfo sched_yield sched_getaffinity getcpu getrlimit
    getpid getppid gettid getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp
    exit exit_group
""".split()
_FILE_CONTROLS = (0, 1, 2, 3, 1030)
"""Duplicate a descriptor, read and set its flags; not: have signals sent to somebody."""
_WRITES = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | (os.O_TMPFILE & ~os.O_DIRECTORY)
_REMEDY = "install libseccomp.so.2 (`apt install libseccomp2`, `dnf install libseccomp`)"


@functools.cache
def compiled_filter() -> bytes:
    """Return the filter as the kernel takes it.

    Returns:
        Instructions of eight bytes each.

    Raises:
        SandboxError: When libseccomp is missing, or too old.
    """
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError) as reason:
        raise SandboxError(
            f"no sandbox for generated programs can be built: the library for seccomp filters is "
            f"missing ({reason}); {_REMEDY}, or verify on another machine"
        ) from reason
    try:
        return _compile(pyseccomp)
    except OSError as reason:
        raise SandboxError(
            f"no sandbox for generated programs can be built: libseccomp refuses the filter "
            f"({reason}); {_REMEDY} 2.4 or newer, or verify on another machine"
        ) from reason


def _compile(seccomp: Any) -> bytes:
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))

    def allow(name: str, *arguments: Any) -> None:
        if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0:  # else: not of this machine
            rules.add_rule(seccomp.ALLOW, name, *arguments)

    for name in _ALLOWED:
        allow(name)
    for place, name in ((1, "open"), (2, "openat")):
        allow(name, seccomp.Arg(place, seccomp.MASKED_EQ, _WRITES, 0))
    for control in _FILE_CONTROLS:
        allow("fcntl", seccomp.Arg(1, seccomp.EQ, control))
    allow("prlimit64", seccomp.Arg(0, seccomp.EQ, 0))  # of itself
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
