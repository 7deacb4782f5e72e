"""Identify a checkpoint by its content: a hash of all bytes of its configurations and weight files.

Neither names of folders nor times are part of an identity, so copies are the same checkpoint, and files
that differ in one bit are not. Hashes are remembered with each file's path, size, inode and times. These
decide only when a file is read again.
"""

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import xxhash

from evaluation.checkpoints.config_files import open_file, os_errors_named
from evaluation.checkpoints.format import Checkpoint
from evaluation.errors import IncompleteCheckpoint
from evaluation.files import fingerprint
from evaluation.prefill.remembered_hashes import remember_hashes, remembered_hashes
from evaluation.providers.adapters.mirror_files import status_of
from evaluation.records import FOLDER

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
        """Return a fingerprint without paths and times; files not remembered are read completely."""
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
        memory = self._folder and self._folder / f"{fingerprint(os.path.realpath(folder))}.json"
        with os_errors_named(folder):
            now = {name: status_of(path) for name, path in files.items()}
            remembered = remembered_hashes(memory) if memory else {}
            hashes = {n: remembered[n][1] for n in now if remembered.get(n, (None,))[0] == now[n]}
            unread = {name: path for name, path in files.items() if name not in hashes}
            began = time.time()
            hashes |= _hashes_of(unread)
            changed = [path for name, path in unread.items() if status_of(path) != now[name]]
        if changed:
            raise IncompleteCheckpoint(
                f"{changed[0]}: changed while it was read; rerun when its writer has finished"
            )
        if unread and memory:
            latest = (began - _SETTLED_SECONDS) * 1e9
            settled = {
                name: (status, hashes[name])
                for name, status in now.items()
                if max(status.changed, status.altered) < latest
            }
            remember_hashes(memory, settled, "hashes of weights")
        return hashes


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
    with open_file(path) as file:
        while chunk := os.pread(file.fileno(), min(stop - start, _CHUNK_BYTES), start):
            digest.update(chunk)
            start += len(chunk)
    return digest.digest()
