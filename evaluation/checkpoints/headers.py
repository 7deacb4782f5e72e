"""Read the headers of a checkpoint's safetensors files; a Hugging Face folder's index names its files.

    8 bytes   length n of the header, little-endian
    n bytes   JSON: {"<tensor>": {"dtype", "shape", "data_offsets"}, "__metadata__": {str: str}}
    the rest  the tensors' bytes, without gaps; offsets count from here

The library safetensors checks that a file is sound.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from evaluation.checkpoints.config_files import exists, open_file, os_errors_named, parse_json
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from evaluation.json_text import load_json

TORCH_NAMES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Dtypes that weights can have, with their names in torch."""

_LARGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
_UNFINISHED = re.compile(r"\.safetensors[^/]+$|\.(?:tmp|temp|part|partial|incomplete|filepart)$")


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file; `start` and `stop` are byte positions in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Header:
    """A safetensors file's header, and the file's state on disk when it was read."""

    path: Path
    tensors: dict[str, TensorEntry]
    metadata: dict[str, str]
    size: int
    mtime_ns: int


def read_header(path: Path) -> Header:
    """Read and check the header of a safetensors file; it holds the file's state at that time.

    Raises:
        IncompleteCheckpoint: The file ends early.
        CheckpointError: It is not a sound safetensors file, or cannot be read.
    """
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        raw = _raw_header(path, status.st_size, file)
    try:
        content = load_json(raw)
    except ValueError as error:
        raise _unsound(path, f"its header is not JSON ({str(error)[:80]})") from None
    _check_sound(path, content, 8 + len(raw), status.st_size)
    metadata = content.pop("__metadata__", None) or {}
    tensors = {name: _entry(entry, 8 + len(raw)) for name, entry in content.items()}
    return Header(path, tensors, metadata, status.st_size, status.st_mtime_ns)


def _raw_header(path: Path, size: int, file: BufferedReader) -> bytes:
    first = file.read(8)
    if len(first) < 8:
        raise _truncated(path, f"{size} bytes")
    length = int.from_bytes(first, "little")
    if length > _LARGEST_HEADER:
        raise _unsound(path, f"its header would be {length:,} bytes long")
    raw = file.read(length)
    if len(raw) < length:
        raise _truncated(path, f"{size:,} bytes, inside the header")
    return raw


def _check_sound(path: Path, content: Any, origin: int, size: int) -> None:
    """Open a file with safetensors; raise as `read_header` if it is refused or holds no tensors."""
    try:
        with safe_open(path, framework="numpy") as file:
            is_empty = not file.keys()
    except SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        if not reason.startswith("incomplete metadata"):  # the tensors and the file end apart
            raise _unsound(path, reason[:200]) from None
        offsets = [entry["data_offsets"][1] for name, entry in content.items() if name[:2] != "__"]
        end = origin + max(offsets, default=0)
        if size < end:
            raise _truncated(path, f"{size:,} of {end:,} bytes") from None
        raise _unsound(path, f"it has {size - end:,} bytes after its last tensor") from None
    if is_empty:
        raise _unsound(path, "it holds no tensors")


def _entry(entry: dict[str, Any], origin: int) -> TensorEntry:
    start, stop = entry["data_offsets"]
    return TensorEntry(entry["dtype"], tuple(entry["shape"]), origin + start, origin + stop)


def _truncated(path: Path, extent: str) -> IncompleteCheckpoint:
    return IncompleteCheckpoint(
        f"{path}: ends early ({extent}); wait until it is written, or copy it again"
    )


def _unsound(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{path}: not a sound safetensors file: {reason}; copy it again")


def read_folder_headers(folder: Path) -> list[Header]:
    """Read the headers of a Hugging Face folder's files, sorted by name; check them against its index.

    Raises:
        IncompleteCheckpoint: A file or a tensor is missing.
        CheckpointError: The index or a file is not sound, or they are from different downloads.
        UnsupportedCheckpoint: The weights are pickled.
    """
    if exists(folder / _INDEX):
        return _indexed(folder)
    single = folder / _SINGLE
    if exists(single):
        return [read_header(single)]
    pickled = sorted(folder.glob("pytorch_model*.bin"))
    if pickled:
        raise UnsupportedCheckpoint(
            f"{pickled[0]}: pickled weights are never opened; save the model as safetensors "
            "(`save_pretrained`) first"
        )
    raise IncompleteCheckpoint(
        f"{single}: missing, and so is {_INDEX}; the folder has a config.json but no weights"
    )


def folder_files(folder: Path) -> list[Path]:
    """Return the weight files of a Hugging Face folder by its index, or its only one; raise as above."""
    if exists(folder / _INDEX):
        return [folder / name for name in sorted({*_weight_map(folder / _INDEX).values()})]
    return [folder / _SINGLE]


def _indexed(folder: Path) -> list[Header]:
    places = _weight_map(folder / _INDEX)
    headers = {}
    for name in sorted(set(places.values())):
        path = folder / name
        if not exists(path):
            raise IncompleteCheckpoint(
                f"{path}: missing, though {_INDEX} names it; wait until it is downloaded, or copy it"
            )
        headers[name] = read_header(path)
    for tensor, name in places.items():
        if tensor not in headers[name].tensors:
            raise IncompleteCheckpoint(
                f"{folder / name}: lacks {tensor}, which {_INDEX} places there; download it again"
            )
    for name, header in headers.items():
        foreign = sorted(t for t in header.tensors if places.get(t) != name)
        if foreign:
            raise CheckpointError(
                f"{folder / name}: holds {foreign[0]}, which {_INDEX} does not place there; "
                "the files are from different downloads, download them again"
            )
    return list(headers.values())


def _weight_map(path: Path) -> dict[str, str]:
    places: Any = parse_json(path).get("weight_map")
    if not isinstance(places, dict) or not places or not all(map(_is_file_name, places.values())):
        raise CheckpointError(
            f"{path}: its `weight_map` is not a table of file names; download it again"
        )
    return places


def _is_file_name(name: Any) -> bool:
    """Return whether the name is one of a file directly in the folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & {"/", "\0"}


def weight_files(checkpoint: Path) -> list[Path]:
    """Return the safetensors files below `checkpoint/model`, sorted.

    Raises:
        IncompleteCheckpoint: There is none, or an unfinished one.
        CheckpointError: There is a link to a folder, which is not followed.
    """
    folder = checkpoint / "model"
    if not folder.is_dir():
        raise IncompleteCheckpoint(f"{folder}: no such folder; the checkpoint has no weights")
    files = []
    for path in _files_below(folder):
        if path.name.endswith(".safetensors") and not path.name.startswith("."):
            files.append(path)
        elif _UNFINISHED.search(path.name):
            raise IncompleteCheckpoint(
                f"{path}: an unfinished file; wait until the checkpoint is "
                "written or copied, or delete the file if no process writes to it any more"
            )
    if not files:
        raise IncompleteCheckpoint(f"{folder}: no safetensors files; the checkpoint has no weights")
    return sorted(files)


def _files_below(top: Path) -> Iterator[Path]:
    """Yield all files; raise CheckpointError for a link to a folder, which may lead anywhere."""

    def refuse(error: OSError) -> None:
        raise error

    with os_errors_named(top):
        for parent, folders, names in os.walk(top, onerror=refuse):
            for path in (Path(parent, folder) for folder in folders):
                if path.is_symlink():
                    raise CheckpointError(
                        f"{path}: a link to a folder; such links are not followed: replace it with a copy"
                    )
            yield from (Path(parent, name) for name in names)
