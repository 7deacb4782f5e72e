"""Finds this process's control groups, of versions 1 and 2, and reads the numbers in their files.

    /proc/self/cgroup       its path in each hierarchy: `4:memory:/slurm/job_7/step_0`, version 2 `0::/…`
    /proc/self/mountinfo    where hierarchies are mounted, and the group that each mount begins with

A container may have only a part of a hierarchy mounted, anywhere, or none. Imports only the standard
library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PROC = Path("/proc")

_VERSION_2 = "cgroup2"
_OCTAL = re.compile(r"\\([0-7]{3})")


def groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's groups and of their parents that are mounted here.

    Args:
        controller: `memory` or `cpu`. A hierarchy of version 2 may lack its files.
    """
    try:
        paths = dict(_paths(controller))
        mounts = list(_mounts(controller))
    except OSError:  # another system than Linux, or a container without /proc
        return
    for version, root, place in mounts:
        if version in paths:
            yield from _lineage(place, PurePosixPath(root), PurePosixPath(paths[version]))


def number(path: Path) -> int | None:
    """Return the number in a group's file; None if it is `max`, or the kernel has no such file."""
    text = content(path).strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def content(path: Path) -> str:
    """Return the text of a file of the kernel; none if it has no such file, or does not show it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:  # such as ENODEV, if the group has just been removed
        return ""


def _paths(controller: str) -> Iterator[tuple[str, str]]:
    """Yield the version of each hierarchy that may limit, and this process's path in it."""
    for line in _lines("cgroup"):
        number_of_hierarchy, controllers, path = line.split(":", 2)
        if number_of_hierarchy == "0":
            yield _VERSION_2, path
        elif controller in controllers.split(","):
            yield "cgroup", path


def _mounts(controller: str) -> Iterator[tuple[str, str, Path]]:
    """Yield version, first group and mount point of each mounted hierarchy that may limit."""
    for line in _lines("mountinfo"):
        mount, _, system = line.partition(" - ")
        kind, *_, options = system.split(" ")
        if kind == _VERSION_2 or (kind == "cgroup" and controller in options.split(",")):
            root, place = map(_unescaped, mount.split(" ")[3:5])
            yield kind, root, Path(place)


def _lineage(place: Path, root: PurePosixPath, path: PurePosixPath) -> Iterator[Path]:
    """Yield the folders of a group and its parents under a mount that begins with the group `root`.

    Both are as this process's namespace sees them, so either may begin with `/..`.
    """
    if ".." in root.parts:  # begins above the namespace, by groups whose names are not known
        yield place
        return
    if ".." in path.parts or not path.is_relative_to(root):
        return  # the mount has other groups
    folder = place / path.relative_to(root)
    while folder != place:
        yield folder
        folder = folder.parent
    yield place


def _lines(name: str) -> list[str]:
    text = (PROC / "self" / name).read_text(encoding="utf-8", errors="surrogateescape")
    return text.splitlines()


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda code: chr(int(code[1], 8)), text)
