"""Identify a checkpoint by its content: a hash of all bytes of its configurations and weight files.

Neither names of folders nor times are part of an identity, so copies are the same checkpoint, and files
that differ in one bit are not. Hashes are remembered with each file's size, times and inode. These
decide only when a file is read again.
"""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import xxhash

from evaluation.checkpoints.config_files import os_errors_named
from evaluation.checkpoints.format import Checkpoint
from evaluation.errors import IncompleteCheckpoint
from evaluation.files import fingerprint, write_json

_PART_BYTES = 64 << 20
"""Bytes that one thread reads as one task; a file's hash is that of the hashes of its parts."""
_CHUNK_BYTES = 4 << 20

_THREADS = 8
"""On a parallel file system, one reader gets a small part of the bandwidth."""

_SETTLED_SECONDS = 2.0
"""A file that changed later than this before it was read is not remembered: clocks of file systems are
coarse, so another write may leave the same times."""


class Contents:
    """Hashes of checkpoints' weight files, remembered below the results, if these are given."""

    def __init__(self, results: Path | None = None) -> None:
        self._folder = results and results / ".made" / "contents"

    def identity(self, checkpoint: Checkpoint) -> str:
        """Return a fingerprint without paths and times; files not remembered are read completely."""
        folder = checkpoint.path
        files = {path.relative_to(folder).as_posix(): path for path in checkpoint.weights}
        with os_errors_named(folder):
            hashes = self._hashes(folder, files)
        content = {
            "configurations": checkpoint.texts,
            "files": [[name, hashes[name]] for name in sorted(files)],
        }
        is_stated = checkpoint.training is None and checkpoint.use_mup is not None
        return fingerprint(content | ({"use_mup": checkpoint.use_mup} if is_stated else {}))

    def _hashes(self, folder: Path, files: Mapping[str, Path]) -> dict[str, str]:
        """Return the hash of each file by its name, and remember those that had to be computed."""
        memory = self._folder and self._folder / f"{fingerprint(os.path.realpath(folder))}.json"
        now = {name: _status(path) for name, path in files.items()}
        kept: dict[str, Any] = {}  # pairs of status and hash
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(memory.read_text(encoding="utf-8")) if memory else {}
        hashes = {n: kept[n][1] for n in now if n in kept and kept[n][0] == now[n]}
        unread = {name: path for name, path in files.items() if name not in hashes}
        began = time.time()
        hashes |= _hashes_of(unread)
        if changed := [path for name, path in unread.items() if _status(path) != now[name]]:
            raise IncompleteCheckpoint(
                f"{changed[0]}: changed while it was read; rerun when its writer has finished"
            )
        if unread and memory:
            latest = (began - _SETTLED_SECONDS) * 1e9
            settled = {n: (s, hashes[n]) for n, s in now.items() if max(s[1], s[2]) < latest}
            with contextlib.suppress(OSError):  # where this user may not write, all are read again
                write_json(memory, settled)
        return hashes


def _status(path: Path) -> list[int]:
    """Return a file's size, times and inode, which differ after the file was changed."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _hashes_of(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the hash of each file; threads read parts of them at the same time."""
    sizes = {name: path.stat().st_size for name, path in files.items()}
    parts = [
        (n, start) for n, size in sizes.items() for start in range(0, max(size, 1), _PART_BYTES)
    ]
    wholes = {name: xxhash.xxh3_128() for name in files}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hashes") as pool:
        digests = pool.map(lambda part: _digest(files[part[0]], part[1]), parts)
        for (name, _), digest in zip(parts, digests, strict=True):
            wholes[name].update(digest)
    return {name: whole.hexdigest() for name, whole in wholes.items()}


def _digest(path: Path, start: int) -> bytes:
    """Return the hash of a part of a file."""
    digest, stop = xxhash.xxh3_128(), start + _PART_BYTES
    with open(path, "rb") as file:
        while chunk := os.pread(file.fileno(), min(stop - start, _CHUNK_BYTES), start):
            digest.update(chunk)
            start += len(chunk)
    return digest.digest()
