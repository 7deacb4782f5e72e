"""Check by samples of each tensor that its file was written to the end, and holds numbers.

A copy that was cut off after its space was allocated leaves zeros, and so does a machine that crashes.
Training leaves no page of zeros in a matrix, except in rows of a vocabulary that no text uses, and no
norm of zeros. Some models initialize the head and the last matrix of each block with zeros: at step 0
or at an unknown step such matrices are logged and accepted.
"""

import logging
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np

from evaluation.checkpoints.config_files import open_file
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import Header, TensorEntry
from evaluation.errors import CheckpointError, IncompleteCheckpoint

log = logging.getLogger(__name__)

_MAY_BEGIN_AS_ZERO = re.compile(
    r"(?:^|[/.]|_merged_)(?:q_proj|o_proj|down_proj|lm_head|gate|router|shared_expert_gate|out_proj|"
    r"c_proj|dense|dense_4h_to_h|embed_out|fc2|fc_out|wo|w2)(?:[/.]|_pp-rank|$)"
)
_VOCABULARY = re.compile(r"embed|lm_head|wte|wpe")
"""Matrices with a row for each token: the first may be padding, and the last of no token at all."""
_BIAS = re.compile(r"bias|beta")

_PLACES = {False: (0.0, 0.5, 1.0), True: (0.25, 0.5, 0.75)}
"""Where samples are taken, as shares of a tensor; `True`: of a matrix with a row for each token."""
_WORDS = {0.0: "at its beginning", 0.25: "in its first half", 0.5: "in its middle",
          0.75: "in its second half", 1.0: "at its end"}  # fmt: skip

_PAGE, _LEAST = 4096, 16
"""Bytes of a sample: a page, but of a small tensor an eighth, and not less than the second."""
_CHUNK = 1 << 20
_THREADS = 8

_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


@dataclass(frozen=True)
class _Finding:
    name: str
    """File below the checkpoint and tensor."""
    what: str
    is_initial: bool
    """Whether a model may begin so."""


def check_written(checkpoint: Checkpoint) -> None:
    """Read samples at the beginning, in the middle and at the end of every tensor.

    Raises:
        IncompleteCheckpoint: A part that is never zero is zero.
        CheckpointError: A sample is not finite.
    """
    folder = checkpoint.path
    is_nanotron = checkpoint.kind == "nanotron"
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(
            lambda header: list(_findings(header, folder, is_nanotron)), checkpoint.headers
        )
        findings = [finding for of_file in found for finding in of_file]
    initial = []
    for fault in findings:
        if not fault.is_initial or checkpoint.step:
            raise _broken(folder, fault)
        initial.append(fault.name)
    if initial:
        _log_zeros(folder, len(initial), initial[0])


def _broken(folder: Path, finding: _Finding) -> CheckpointError:
    if finding.what == _NOT_FINITE:
        return CheckpointError(
            f"{folder / finding.name} {finding.what}; the training has diverged, or the file is damaged: "
            "evaluate another step, or copy it again"
        )
    return IncompleteCheckpoint(
        f"{folder / finding.name} {finding.what}, as in a copy that was not finished; wait until it is "
        "written, or copy it again"
    )


_ZERO = "holds nothing but zeros"
_NOT_FINITE = "holds numbers that are not finite"


def _findings(header: Header, folder: Path, is_nanotron: bool) -> Iterator[_Finding]:
    with open_file(header.path) as file:
        for tensor, entry in header.tensors.items():
            name = f"{header.path.relative_to(folder).as_posix()}: {tensor}"
            if "F" in entry.dtype and entry.shape and 0 not in entry.shape:
                yield from _look_at(file, entry, name, is_nanotron)


def _look_at(
    file: IO[bytes], entry: TensorEntry, name: str, is_nanotron: bool
) -> Iterator[_Finding]:
    """Yield what is wrong with a tensor: at most one finding."""
    words = name.replace(": ", "/")
    is_vector = len(entry.shape) == 1
    has_rows_of_tokens = not is_vector and _VOCABULARY.search(words) is not None
    for place in _PLACES[has_rows_of_tokens]:
        sample = _sample(file, entry, place)
        if not _is_finite(sample, entry.dtype):
            yield _Finding(name, _NOT_FINITE, is_initial=False)
            return
        if sample.strip(b"\0") or not sample:  # another check finds that a file became shorter
            continue
        if is_vector and _BIAS.search(words):
            continue
        if _is_zero(file, entry):
            begins_so = not is_nanotron if is_vector else bool(_MAY_BEGIN_AS_ZERO.search(words))
            yield _Finding(name, _ZERO, is_initial=begins_so)
        else:
            yield _Finding(name, f"{_ZERO} {_WORDS[place]}", is_initial=False)
        return


def _sample(file: IO[bytes], entry: TensorEntry, place: float) -> bytes:
    size = entry.stop - entry.start
    length = min(size, _PAGE, max(_LEAST, size // 8 // 8 * 8))
    start = int((size - length) * place) // 8 * 8  # whole numbers of any dtype
    return os.pread(file.fileno(), length, entry.start + start)


def _is_finite(sample: bytes, dtype: str) -> bool:
    """Return whether no number of a sample is NaN or infinite; True for dtypes that have neither."""
    if dtype in _FLOATS:
        kind = np.dtype(_FLOATS[dtype])
        whole = len(sample) // kind.itemsize * kind.itemsize
        return bool(np.isfinite(np.frombuffer(sample[:whole], kind)).all())
    if dtype == "BF16":
        numbers = np.frombuffer(sample[: len(sample) // 2 * 2], "<u2")
        return not bool(((numbers & 0x7F80) == 0x7F80).any())
    return True


def _is_zero(file: IO[bytes], entry: TensorEntry) -> bool:
    place, size = entry.start, _PAGE
    while place < entry.stop:
        chunk = os.pread(file.fileno(), min(size, entry.stop - place), place)
        if chunk.strip(b"\0") or not chunk:
            return False
        place, size = place + len(chunk), _CHUNK
    return True


@cache
def _log_zeros(folder: Path, count: int, first: str) -> None:
    """Log once, however often a checkpoint is checked."""
    log.warning(
        "%s: %d of its tensors hold nothing but zeros (%s, …), as some models are initialized; if this "
        "one was trained, copy it again",
        folder, count, first,
    )  # fmt: skip
