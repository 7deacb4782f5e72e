"""Headers of safetensors files, read and checked; of the tensors, a few bytes tell them apart.

    8 bytes   length n of the header, little-endian
    n bytes   JSON: {"<tensor>": {"dtype", "shape", "data_offsets"}, "__metadata__": {str: str}}
    the rest  the tensors' bytes, without gaps; offsets count from here

Everything here is plain Python, so a damaged file gives a sentence and nothing is allocated for it.
"""

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeGuard

from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import open_regular
from evaluation.json_text import load_json

DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip

_LARGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""

_SAMPLES, _SAMPLE = 4, 4096
"""So many pieces of a file's tensors, of so many bytes, are part of its digest."""

_MOST_DIMENSIONS = 8
"""No weight has more; torch and numpy stop at 64 with errors of their own."""


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file; `start` and `stop` are byte positions in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Header:
    """What a safetensors file says about itself, and its state on disk when it was read.

    `digest` is of the header and of some of the tensors' bytes.
    """

    path: Path
    tensors: dict[str, TensorEntry]
    metadata: dict[str, str]
    size: int
    mtime_ns: int
    digest: str


def read_header(path: Path) -> Header:
    """Reads and checks a header.

    Raises IncompleteCheckpoint for a file that ends early, CheckpointError for one that is not
    what it claims; both name the file.
    """
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            raw = _raw_header(path, file.read(8), status.st_size, file)
            samples = b"".join(_samples(file, 8 + len(raw), status.st_size))
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None
    content = _parse(path, raw)
    metadata = content.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _foreign(path, "its metadata is not a table of strings")
    origin = 8 + len(raw)
    tensors = {name: _entry(path, name, entry, origin) for name, entry in content.items()}
    if not tensors:
        raise _foreign(path, "it holds no tensors")
    _check_extent(path, tensors, origin, status.st_size)
    digest = hashlib.sha256(raw + samples).hexdigest()
    return Header(path, tensors, metadata, status.st_size, status.st_mtime_ns, digest)


def _raw_header(path: Path, first: bytes, size: int, file: BufferedReader) -> bytes:
    if len(first) < 8:
        raise _truncated(path, f"{size} bytes")
    length = int.from_bytes(first, "little")
    if length > _LARGEST_HEADER:
        raise _foreign(path, f"its header would be {length:,} bytes long")
    raw = file.read(length)
    if len(raw) < length:
        raise _truncated(path, f"{size:,} bytes, inside the header")
    return raw


def _samples(file: BufferedReader, start: int, size: int) -> Iterator[bytes]:
    """Bytes of the tensors, from the first to the last: other weights of the same shapes differ."""
    for number in range(_SAMPLES):
        file.seek(start + max(0, size - _SAMPLE - start) * number // (_SAMPLES - 1))
        yield file.read(_SAMPLE)


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        content = load_json(raw)
    except ValueError as error:
        raise _foreign(path, f"its header is not JSON ({str(error)[:80]})") from None
    if not isinstance(content, dict):
        raise _foreign(path, "its header is not a table")
    return content


def _entry(path: Path, name: str, entry: Any, origin: int) -> TensorEntry:
    if not isinstance(entry, dict):
        raise _foreign(path, f"tensor {name!r} has no description")
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise _foreign(path, f"tensor {name!r} has dtype {str(dtype)[:40]!r}, which is unknown")
    if not _are_counts(shape):
        raise _foreign(path, f"tensor {name!r} has shape {str(shape)[:80]}")
    if len(shape) > _MOST_DIMENSIONS:
        raise _foreign(path, f"tensor {name!r} has {len(shape)} dimensions")
    if not _are_counts(offsets) or len(offsets) != 2:
        raise _foreign(path, f"tensor {name!r} has data_offsets {str(offsets)[:80]}")
    start, stop = offsets
    if stop - start != math.prod(shape) * DTYPE_BYTES[dtype]:
        raise _foreign(
            path, f"tensor {name!r} has {stop - start} bytes, not what {dtype} {shape} takes"
        )
    return TensorEntry(dtype, tuple(shape), origin + start, origin + stop)


def _are_counts(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(
        type(item) is int and 0 <= item < 2**63 for item in value
    )


def _check_extent(path: Path, tensors: dict[str, TensorEntry], origin: int, size: int) -> None:
    end = origin
    for name, entry in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != end:
            raise _foreign(path, f"tensor {name!r} does not start where the one before it ends")
        end = entry.stop
    if size < end:
        raise _truncated(path, f"{size:,} of {end:,} bytes")
    if size > end:
        raise _foreign(path, f"it has {size - end:,} bytes behind its last tensor")


def _truncated(path: Path, extent: str) -> IncompleteCheckpoint:
    return IncompleteCheckpoint(
        f"{path}: ends early ({extent}); wait until it is written, or copy it again"
    )


def _foreign(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{path}: not a sound safetensors file: {reason}; copy it again")
