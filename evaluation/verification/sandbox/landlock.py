"""The sandbox of Landlock, for machines whose users may not make namespaces.

It forbids every access to files but reading what is visible; network and signals are left to the
seccomp filter, and forbidden here once more where the kernel knows how. Names and sizes of files
elsewhere can be asked for; nothing in them can be read.
"""

import ctypes
import os
from ctypes import c_int, c_int32, c_uint32, c_uint64

from evaluation.verification.sandbox import libc
from evaluation.verification.sandbox.visible import hidden_folders, visible_paths

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH, _TELL_VERSION = 1, 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights on files each version of Landlock knows; later ones know 16."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", c_uint64), ("network", c_uint64), ("scopes", c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", c_uint64), ("folder", c_int32)]


def restrict() -> None:
    """Forbids this process and its children all files but the visible ones, for good."""
    version = libc.syscall(_CREATE_RULESET, None, 0, c_uint32(_TELL_VERSION))
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
    """A rule cannot take back what another gives: folders with hidden ones are given by child."""
    hidden = hidden_folders()
    paths: list[str] = []
    for path in visible_paths():
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
