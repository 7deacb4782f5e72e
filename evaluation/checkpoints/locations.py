"""Locate the weights of a subject: in one checkpoint's folder, or in those of a merge's members."""

import os
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.config_files import configuration_file


@dataclass(frozen=True)
class Merge:
    """The weighted mean of checkpoints, which has no folder; `str` writes it as a sum."""

    name: str
    members: tuple[tuple[Path, float], ...]
    """Folders with their weights, whose sum is 1."""

    def __str__(self) -> str:
        return " + ".join(f"{weight:.6g} × {path}" for path, weight in self.members)


Location = Path | Merge


def folders_of(location: Location) -> tuple[Path, ...]:
    """Return the folders that weights are read from: one, or those of a merge's members in order."""
    if isinstance(location, Merge):
        return tuple(path for path, _ in location.members)
    return (location,)


def absent_folder(location: Location) -> Path | None:
    """Return the first folder of a location that holds no checkpoint; None if all hold one."""
    return next((path for path in folders_of(location) if not configuration_file(path)), None)


def real_location(location: Location) -> str:
    """Return the real paths that links lead to now, joined by `os.pathsep`."""
    return os.pathsep.join(map(os.path.realpath, folders_of(location)))
