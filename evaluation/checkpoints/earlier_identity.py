"""Identities and states of checkpoints as version 1 wrote them, to carry its scores over.

An identity came from configurations, sizes, times and four samples of each weight file. Two checkpoints
could have the same one, so it is only compared with records that say where scores came from.
"""

import hashlib
import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from evaluation.checkpoints.config_files import open_file
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.locations import Location
from evaluation.checkpoints.state import State, checkpoint_state
from evaluation.fingerprints import fingerprint

_SAMPLES, _SAMPLE = 4, 4096


def earlier_identity(checkpoint: Checkpoint) -> str:
    """Return the name of the folder in which version 1 stored a checkpoint's scores."""
    if checkpoint.members:
        return fingerprint([[earlier_identity(one), weight] for one, weight in checkpoint.members])
    folder = checkpoint.path
    files = sorted(_described(path, folder) for path in checkpoint.weights)
    content: dict[str, object] = {"configurations": [*checkpoint.texts.values()], "files": files}
    is_stated = checkpoint.training_config is None and checkpoint.use_mup is not None
    return fingerprint(content | ({"use_mup": checkpoint.use_mup} if is_stated else {}))


def earlier_state(location: Location) -> State:
    """Return the state that version 1 recorded: without the time at which a file's status changed."""
    return checkpoint_state(location, with_status_times=False)


def _described(path: Path, folder: Path) -> list[str | int]:
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        length = int.from_bytes(file.read(8), "little")
        digest = hashlib.sha256(file.read(length))
        for sample in _samples(file, 8 + length, status.st_size):
            digest.update(sample)
    name = path.relative_to(folder).as_posix()
    return [name, status.st_size, status.st_mtime_ns, digest.hexdigest()]


def _samples(file: BufferedReader, start: int, size: int) -> Iterator[bytes]:
    for number in range(_SAMPLES):
        file.seek(start + max(0, size - _SAMPLE - start) * number // (_SAMPLES - 1))
        yield file.read(_SAMPLE)
