"""Identify a checkpoint by its content: a hash of all bytes of its configurations and weight files.

Neither names of folders nor times are part of an identity, so copies are the same checkpoint, and files
that differ in one bit are not. Hashes are remembered with each file's path, size, inode and times. These
decide only when a file is read again.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

import xxhash

from evaluation.checkpoints.config_files import open_file, os_errors_named
from evaluation.checkpoints.format import Checkpoint
from evaluation.errors import IncompleteCheckpoint
from evaluation.fingerprints import fingerprint
from evaluation.prefill.remembered_hashes import Hashes, remember_hashes, remembered_hashes
from evaluation.providers.adapters.mirror_files import status_of
from evaluation.records import FOLDER

log = logging.getLogger(__name__)

_PART_BYTES = 64 << 20
"""Bytes that one thread reads as one task; a file's hash is that of the hashes of its parts."""
_CHUNK_BYTES = 4 << 20

_THREADS = 8
"""On a parallel file system, one reader gets a small part of the bandwidth."""

_SETTLED_SECONDS = 2.0
"""A file that changed later than this before it was read is not remembered: clocks of file systems are
coarse, so another write may leave the same times."""


class Contents:
    """Hashes of checkpoints' weight files, remembered below the results.

    Args:
        results: Folder of the results; None: nothing is remembered.
    """

    def __init__(self, results: Path | None = None) -> None:
        self._folder = None if results is None else results / FOLDER / "contents"

    def identity(self, checkpoint: Checkpoint) -> str:
        """Return a fingerprint without paths and times; files not remembered are read completely.

        Raises:
            IncompleteCheckpoint: A file changes while it is read.
            CheckpointError: A file cannot be read.
        """
        folder = checkpoint.path
        files = {path.relative_to(folder).as_posix(): path for path in checkpoint.weights}
        hashes = self._hashes(folder, files)
        content = {
            "configurations": checkpoint.texts,
            "files": [[name, hashes[name]] for name in sorted(files)],
        }
        is_stated = checkpoint.training_config is None and checkpoint.use_mup is not None
        return fingerprint(content | ({"use_mup": checkpoint.use_mup} if is_stated else {}))

    def _hashes(self, folder: Path, files: Mapping[str, Path]) -> dict[str, str]:
        """Return the hash of each file by its name, and remember those that had to be computed."""
        with os_errors_named(folder):
            now = {name: status_of(path) for name, path in files.items()}
            memory = self._memory(folder)
            remembered = remembered_hashes(memory) if memory else {}
            hashes = {
                name: entry[1]
                for name, status in now.items()
                if (entry := remembered.get(name)) is not None and entry[0] == status
            }
            unread = {name: path for name, path in files.items() if name not in hashes}
            began = time.time()
            hashes |= _hashes_of_all(unread)
            for name, path in unread.items():
                if status_of(path) != now[name]:
                    raise IncompleteCheckpoint(
                        f"{path}: changed while it was read; rerun when its writer has finished"
                    )
        if unread and memory is not None:
            _remember(memory, {name: (now[name], hashes[name]) for name in files}, began)
        return hashes

    def _memory(self, folder: Path) -> Path | None:
        """Return the file that remembers a checkpoint's hashes, by the folder that links lead to."""
        if self._folder is None:
            return None
        return self._folder / f"{fingerprint(os.path.realpath(folder))}.json"


def _remember(memory: Path, hashes: Hashes, began: float) -> None:
    latest = (began - _SETTLED_SECONDS) * 1e9
    settled = {
        name: (status, digest)
        for name, (status, digest) in hashes.items()
        if max(status.changed, status.altered) < latest
    }
    remember_hashes(memory, settled, "hashes of weights")


def _hashes_of_all(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the hash of each file; threads read parts of them at the same time."""
    parts = [(name, part) for name, path in files.items() for part in _parts(path)]
    total = sum(part.size for _, part in parts)
    began = time.monotonic()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hashes") as pool:
        digests = list(pool.map(_digest, (part for _, part in parts)))
    wholes = {name: xxhash.xxh3_128() for name in files}
    for (name, _), digest in zip(parts, digests, strict=True):
        wholes[name].update(digest)
    if total >= 10**9:
        seconds = time.monotonic() - began
        log.info("hashed %.1f GB of weights in %.1f s", total / 1e9, seconds)
    return {name: whole.hexdigest() for name, whole in wholes.items()}


class _Part(NamedTuple):
    path: Path
    start: int
    size: int


def _parts(path: Path) -> Iterator[_Part]:
    size = path.stat().st_size
    for start in range(0, max(size, 1), _PART_BYTES):
        yield _Part(path, start, min(_PART_BYTES, size - start))


def _digest(part: _Part) -> bytes:
    digest, left = xxhash.xxh3_128(), part.size
    with open_file(part.path) as file:
        while left > 0 and (chunk := _chunk(file, part.start + part.size - left, left)):
            digest.update(chunk)
            left -= len(chunk)
    return digest.digest()


def _chunk(file: BinaryIO, position: int, left: int) -> bytes:
    return os.pread(file.fileno(), min(left, _CHUNK_BYTES), position)
