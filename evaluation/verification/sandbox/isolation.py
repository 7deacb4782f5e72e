"""Limits what a sandboxed process can read, and its resources, by namespaces or Landlock and rlimits.

Namespaces give the process its own user, file tree, network, process table and System V IPC. Its root
is a read-only tmpfs into which the visible folders are mounted read-only. There is no /proc, no /dev,
no /tmp and no active network interface.

Landlock is for machines whose users may not make namespaces. It forbids every access to files except
reading the visible ones. The seccomp filter forbids network and signals; Landlock forbids them as
well if the kernel supports that. Names and sizes of other files can be read, but not their
contents.
"""

import ctypes
import math
import os
import resource
import sys
import sysconfig
from collections.abc import Sequence
from ctypes import c_int, c_int32, c_uint32, c_uint64

from evaluation.children import end_with_parent
from evaluation.verification.sandbox import libc
from evaluation.verification.sandbox.model import Limits

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_PACKAGES = ("site-packages", "dist-packages")

_NEW_MOUNTS, _NEW_CGROUP, _NEW_NAMES, _NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_ALL = _NEW_MOUNTS | _NEW_NAMES | _NEW_IPC | _NEW_USER | _NEW_PROCESSES | _NEW_NETWORK | _NEW_CGROUP

_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND = 1, 2, 4, 32, 4096
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_KEPT = {8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of a mount (noexec, noatime, nodiratime, relatime) that must stay set when it is remounted."""

_USER = 1000
_MOUNT_POINT = "/proc"
"""Where the new root is built: it exists on every machine and never contains Python's files."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH, _GET_VERSION = 1, 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of file rights that each version of Landlock knows; later versions know 16."""

_MOST_OPEN = 32
_GRACE = 2  # seconds in which the zygote ends the process, with a reason, before the kernel does
_FRAMES = 1000
"""Python's recursion limit, not counting the frames below the program."""


def enter_namespaces() -> None:
    """Move this process into new namespaces; its next child is process 1 of the new process table."""
    user, group = os.getuid(), os.getgid()
    libc.unshare(_ALL)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_USER} {user} 1"),
        ("gid_map", f"{_USER} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter_root() -> None:
    """Give this process, number 1 in its process table, a root with only the visible files."""
    libc.mount("", "/", "", _RECURSIVE | _PRIVATE)
    _mount_empty(_MOUNT_POINT)
    for path in _visible_paths():
        _mount_read_only(path, _MOUNT_POINT + path)
    for path in _hidden_folders():
        _mount_empty(_MOUNT_POINT + path)
        _remount_read_only(_MOUNT_POINT + path)
    libc.make_root(_MOUNT_POINT)
    _remount_read_only("/")


def _mount_empty(target: str) -> None:
    libc.mount("tmpfs", target, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=755")


def _mount_read_only(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "x"):
            pass
    libc.mount(source, target, "", _BIND | _RECURSIVE)
    _remount_read_only(target)


def _remount_read_only(target: str) -> None:
    present = os.statvfs(target).f_flag
    kept = sum(new for old, new in _KEPT.items() if present & old)
    flags = _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES
    libc.mount("", target, "", flags | kept)


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", c_uint64), ("network", c_uint64), ("scopes", c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", c_uint64), ("folder", c_int32)]


def apply_landlock() -> None:
    """Permanently forbid this process and its children all files except the visible ones."""
    version = libc.syscall(_CREATE_RULESET, None, 0, c_uint32(_GET_VERSION))
    everything = _Ruleset(
        files=(1 << _FILE_RIGHTS.get(version, 16)) - 1,
        network=0b11 if version >= 4 else 0,
        scopes=0b11 if version >= 6 else 0,
    )
    size = ctypes.c_size_t(ctypes.sizeof(everything))
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(everything), size, c_uint32(0))
    for path in _readable():
        _allow(ruleset, path)
    libc.syscall(_RESTRICT_SELF, c_int(ruleset), c_uint32(0))
    os.close(ruleset)
    os.chdir("/")


def _readable() -> list[str]:
    """Return the readable paths. A rule cannot exclude a subfolder, so its siblings are listed."""
    hidden = _hidden_folders()
    paths: list[str] = []
    for path in _visible_paths():
        inner = [folder for folder in hidden if os.path.dirname(folder) == path]
        children = (os.path.join(path, name) for name in os.listdir(path)) if inner else (path,)
        paths += [child for child in children if child not in hidden]
    return paths


def _allow(ruleset: int, path: str) -> None:
    rights = _READ_FILE | _READ_FOLDER if os.path.isdir(path) else _READ_FILE
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathRule(rights, folder)
        libc.syscall(
            _ADD_RULE, c_int(ruleset), c_int(_PATH_BENEATH), ctypes.byref(rule), c_uint32(0)
        )
    finally:
        os.close(folder)


def _visible_paths() -> list[str]:
    """Return the visible files and folders that exist, outer ones first."""
    paths = {*_LIBRARIES, *_standard_library(), *_numpy()}
    return sorted(
        (path for path in paths if os.path.exists(path)), key=lambda path: (len(path), path)
    )


def _hidden_folders() -> list[str]:
    """Return the folders of other packages inside the standard library's folder."""
    inside = (os.path.join(path, name) for path in _standard_library() for name in _PACKAGES)
    return [path for path in inside if os.path.isdir(path)]


def _standard_library() -> set[str]:
    return {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}


def _numpy() -> set[str]:
    numpy = sys.modules.get("numpy")
    if numpy is None or numpy.__file__ is None:
        return set()
    folder = os.path.dirname(numpy.__file__)
    return {folder, f"{folder}.libs"}


def arrange_descriptors(null: int, descriptors: Sequence[int]) -> None:
    """Make /dev/null descriptor 0, 1 and 2, the given ones 3, 4, … in order; close all others."""
    high = [os.dup2(old, 100 + place) for place, old in enumerate((null, null, null, *descriptors))]
    for place, descriptor in enumerate(high):
        os.dup2(descriptor, place)
    os.closerange(len(high), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def confine(limits: Limits, present_bytes: int, seccomp: bytes) -> None:
    """Set the limits of this process, and last the seccomp filter.

    Args:
        present_bytes: Memory that the process has already.
    """
    end_with_parent()
    for kind, most in (
        (resource.RLIMIT_CPU, math.ceil(limits.seconds) + _GRACE),
        (resource.RLIMIT_AS, present_bytes + (limits.memory_mb << 20)),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MOST_OPEN),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        limit(kind, most)
    sys.setrecursionlimit(_FRAMES + _depth())
    libc.share_one_heap()
    libc.install_filter(seccomp)


def limit(kind: int, most: int) -> None:
    """Permanently set a limit of this process, one of `RLIMIT_…`, unless it already has a lower one."""
    allowed = resource.getrlimit(kind)[1]
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(kind, (most, most))


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth + 10
