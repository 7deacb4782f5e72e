"""The system calls that a sandboxed program may make; every other one fails with "not permitted".

A program cannot connect sockets, start processes, send signals or write files. It has no mounts,
namespaces, keys, io_uring, bpf or ptrace. Memory outside of the process (pipes, memory files, shared
segments) is forbidden too, as the memory limit does not count it. Threads end with their process and
share its limits. asyncio may have its pair of sockets, of which the limit on descriptors allows few.
"""

import errno
import functools
import os
import tempfile
from typing import Any

from evaluation.errors import SandboxError, missing_package

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
    epoll_create1 epoll_ctl epoll_wait epoll_pwait recvfrom
    exit exit_group
""".split()
_UNIX = 1
"""AF_UNIX: asyncio needs a pair of such sockets."""
_DEVICE_CONTROLS = (0x5421, 0x5450, 0x5451)
"""FIONBIO, FIONCLEX, FIOCLEX: set whether a descriptor blocks, and whether exec closes it."""
_THREAD = 0x00010000
"""CLONE_THREAD: the new thread ends with its process, and shares its limits."""
_FILE_CONTROLS = (0, 1, 2, 3, 1030)
"""Duplicate a descriptor, read and set its flags; not F_SETOWN, which could send signals."""
_WRITES = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | (os.O_TMPFILE & ~os.O_DIRECTORY)
_REMEDY = "install libseccomp 2.4 or newer (`apt install libseccomp2`, `dnf install libseccomp`)"
NO_SANDBOX = "no sandbox for generated programs can be built"
ELSE = ", verify on another machine, or write `sandbox: none` into `verification`"


@functools.cache
def compiled_filter() -> bytes:
    """Return the filter as the kernel takes it: instructions of eight bytes each.

    Raises:
        SandboxError: When pyseccomp or libseccomp is missing, or too old.
    """
    try:
        import pyseccomp

        return _compile(pyseccomp)
    except ModuleNotFoundError as reason:
        raise SandboxError(f"{NO_SANDBOX}: {missing_package('pyseccomp')}{ELSE}") from reason
    except (ImportError, OSError, RuntimeError) as reason:  # the library is missing, or too old
        raise SandboxError(f"{NO_SANDBOX}: {reason}; {_REMEDY}{ELSE}") from reason


def _compile(seccomp: Any) -> bytes:
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))

    def allow(name: str, *arguments: Any) -> None:
        if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0:  # else this machine lacks it
            rules.add_rule(seccomp.ALLOW, name, *arguments)

    for name in _ALLOWED:
        allow(name)
    allow("clone", seccomp.Arg(0, seccomp.MASKED_EQ, _THREAD, _THREAD))
    allow("socketpair", seccomp.Arg(0, seccomp.EQ, _UNIX))
    allow("sendto", seccomp.Arg(4, seccomp.EQ, 0))  # only to the connected end: no address
    for control in _DEVICE_CONTROLS:
        allow("ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, control))
    if seccomp.resolve_syscall(seccomp.Arch.NATIVE, "clone3") >= 0:
        rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")  # libc then uses clone
    for place, name in ((1, "open"), (2, "openat")):
        allow(name, seccomp.Arg(place, seccomp.MASKED_EQ, _WRITES, 0))
    for control in _FILE_CONTROLS:
        allow("fcntl", seccomp.Arg(1, seccomp.EQ, control))
    allow("prlimit64", seccomp.Arg(0, seccomp.EQ, 0))  # only its own limits
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
