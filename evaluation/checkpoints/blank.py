"""Weights that were never written: files of full length, with sound headers and nothing but zeros.

A copy into space that was allocated first leaves them where it was cut, and so does a machine that
goes down. Training leaves no matrix of zeros. Some models begin with them, where a block ends and in
the head: at step 0, or of an unknown step, those are told of and taken as they are.
"""

import errno
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import IO

from evaluation.checkpoints.headers import Header, TensorEntry
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import open_regular

log = logging.getLogger(__name__)

_MAY_BEGIN_AS_ZERO = re.compile(
    r"(?:^|[/.]|_merged_)(?:q_proj|o_proj|down_proj|lm_head|gate|router|shared_expert_gate|out_proj|"
    r"c_proj|dense|dense_4h_to_h|embed_out|fc2|fc_out|wo|w2)(?:[/.]|_pp-rank|$)"
)
_FIRST, _CHUNK = 4096, 1 << 20
"""Bytes: enough to find a number that is not zero, and what is read at a time if it is not."""


def check_written(folder: Path, headers: Iterable[Header], step: int | None) -> None:
    """Raises IncompleteCheckpoint for a matrix of zeros, CheckpointError for an unreadable file."""
    begun = []
    for header in headers:
        for tensor in _blank(header):
            name = f"{header.path.relative_to(folder).as_posix()}: {tensor}"
            if step or not _MAY_BEGIN_AS_ZERO.search(name.replace(": ", "/")):
                raise IncompleteCheckpoint(
                    f"{folder / name} holds nothing but zeros, as a copy that was not finished; wait "
                    "until it is written, or copy it again"
                )
            begun.append(name)
    if begun:
        _tell(folder, len(begun), begun[0])


@cache
def _tell(folder: Path, count: int, first: str) -> None:
    """Once, however often a checkpoint is looked at."""
    log.warning(
        "%s: %d of its matrices hold nothing but zeros (%s, …), as some models begin; if this one was "
        "trained, copy it again",
        folder, count, first,
    )  # fmt: skip


def _blank(header: Header) -> Iterator[str]:
    """Names of the file's matrices of floats that are all zero."""
    try:
        with open_regular(header.path) as file:
            for name, entry in header.tensors.items():
                is_matrix = len(entry.shape) > 1 and 0 not in entry.shape
                if is_matrix and "F" in entry.dtype and _is_blank(file, entry):
                    yield name
    except OSError as error:
        raise CheckpointError(
            f"{header.path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None


def _is_blank(file: IO[bytes], entry: TensorEntry) -> bool:
    place, size = entry.start, _FIRST
    while place < entry.stop:
        chunk = os.pread(file.fileno(), min(size, entry.stop - place), place)
        if not chunk or chunk.count(0) < len(chunk):  # or shorter than it was, which others tell
            return False
        place, size = _next_written(file, place + len(chunk)), _CHUNK
    return True


def _next_written(file: IO[bytes], place: int) -> int:
    """The next place that is more than a hole of a sparse file, which reads as zeros."""
    try:
        return os.lseek(file.fileno(), place, os.SEEK_DATA)
    except OSError as error:
        return sys.maxsize if error.errno == errno.ENXIO else place
