"""The sandbox of namespaces: an own user, file tree, network, process table and System V IPC.

Its root is an empty, read-only tmpfs into which the visible folders are mounted read-only. There is
no /proc, no /dev, no /tmp and no network interface that is up.
"""

import os

from evaluation.verification.sandbox import libc
from evaluation.verification.sandbox.visible import hidden_folders, visible_paths

_NEW_MOUNTS, _NEW_CGROUP, _NEW_NAMES, _NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_ALL = _NEW_MOUNTS | _NEW_NAMES | _NEW_IPC | _NEW_USER | _NEW_PROCESSES | _NEW_NETWORK | _NEW_CGROUP

_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND = 1, 2, 4, 32, 4096
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_KEPT = {8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of a file system (noexec, noatime, nodiratime, relatime) that a new mount of it must keep."""

_USER = 1000
_MOUNT_POINT = "/proc"
"""Where the new root is put together: on every machine, and never a place of Python's files."""


def leave_the_machine() -> None:
    """Moves this process into new namespaces; its next child is the first of a process table."""
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
    """Gives this process, the first in its process table, a root with what is visible alone."""
    visible, hidden = visible_paths(), hidden_folders()
    libc.mount("", "/", "", _RECURSIVE | _PRIVATE)
    _mount_empty(_MOUNT_POINT)
    for path in visible:
        _mount_read_only(path, _MOUNT_POINT + path)
    for path in hidden:
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
