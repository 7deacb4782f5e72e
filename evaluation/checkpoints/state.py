"""Describe the state of a checkpoint's files by names, sizes, times and inodes; no file is opened.

A different state shows that a job has to look at the content again (`contents`), never what it is.
Only configurations and weights count, wherever links lead to now.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluation.checkpoints.config_files import CONFIG_FILES

State = tuple[str, ...]
"""Sorted digests, one a file: equal as long as no file is added, deleted or changed."""

_READ = (*CONFIG_FILES, "generation_config.json")
_WEIGHTS = (".safetensors", ".safetensors.index.json")

_THREADS = 8
"""On a parallel file system each `stat` waits for a server; threads wait at the same time."""


def checkpoint_state(folder: Path) -> State:
    """Return the state of a checkpoint's configurations and weights; empty if there are none.

    Weights count even without a configuration: if they differ from those that were scored, the
    checkpoint is broken, not deleted. `model` may be a link.
    """
    top = os.path.realpath(folder)
    inside = _below(os.path.realpath(os.path.join(top, "model")))
    files = [p for p in _entries(top) if p.name in _READ or p.name.endswith(_WEIGHTS)]
    files += [path for path in inside if path.name.endswith(_WEIGHTS)]
    return tuple(sorted(filter(None, map(_digest, files))))


def checkpoint_states(folders: Iterable[Path]) -> dict[Path, State]:
    """Return the states of many checkpoints, in their order; read in parallel, duplicates once."""
    folders = list(dict.fromkeys(folders))
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(folders, pool.map(checkpoint_state, folders), strict=True))


def is_left_of(state: State, recorded: object) -> bool:
    """Return whether no file was added or changed since a state was recorded.

    Deleted files are allowed: a checkpoint is deleted file by file, and no score changes.

    Args:
        recorded: The state in a record; anything but a list counts as no record.
    """
    return isinstance(recorded, list | tuple) and {*map(str, recorded)}.issuperset(state)


def _below(folder: str) -> Iterator["os.DirEntry[str]"]:
    """Yield all files below a folder; links to folders are not followed, so there is no endless loop."""
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path)
        else:
            yield entry


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:  # deleted or unreadable, which opening the checkpoint reports
        return []


def _digest(entry: "os.DirEntry[str]") -> str | None:
    try:
        status = entry.stat(follow_symlinks=not entry.is_dir())
    except OSError:  # deleted meanwhile, or a link to a deleted file
        return None
    # Only the time at which its status changed shows a write that restored the other time.
    times = f"{status.st_mtime_ns}\0{status.st_ino}\0{status.st_ctime_ns}"
    about = f"{entry.path}\0{status.st_size}\0{times}"
    return hashlib.blake2b(os.fsencode(about), digest_size=8).hexdigest()
