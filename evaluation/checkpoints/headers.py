"""Find a checkpoint's safetensors files, and read their headers.

A Hugging Face folder has one file, or an index of several. What else looks like its weights is refused,
because another program could load it.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

from evaluation.checkpoints.config_files import exists, open_file, os_errors_named, parse_json
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

TORCH_NAMES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Dtypes that weights can have, with their names in torch."""

_OTHER_SIZE = ("header too small", "invalid header length", "incomplete metadata")
"""How the library's errors begin for a file that ends early or late."""

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
_UNFINISHED = re.compile(r"\.safetensors[^/]+$|\.(?:tmp|temp|part|partial|incomplete|filepart)$")


class TensorEntry(NamedTuple):
    """Dtype, by its name in the format, and shape of one tensor of a file."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Header:
    """A safetensors file's header, and the file's state on disk when it was read."""

    path: Path
    tensors: dict[str, TensorEntry]
    metadata: dict[str, str]
    size: int
    mtime_ns: int


def read_header(path: Path) -> Header:
    """Read the header of a safetensors file, which the library checks; it holds the file's state then."""
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        try:
            with safe_open(path, framework="numpy") as content:
                slices = {name: content.get_slice(name) for name in {*content.keys()}}
                metadata = content.metadata() or {}
        except SafetensorError as error:
            raise _unsound(path, status.st_size, str(error)) from None
    tensors = {n: TensorEntry(s.get_dtype(), tuple(s.get_shape())) for n, s in slices.items()}
    if not tensors:
        raise CheckpointError(f"{path}: not a sound safetensors file: it holds no tensors")
    return Header(path, tensors, metadata, status.st_size, status.st_mtime_ns)


def _unsound(path: Path, size: int, reason: str) -> CheckpointError:
    reason = reason.removeprefix("Error while deserializing header: ")
    if reason.startswith(_OTHER_SIZE):
        return IncompleteCheckpoint(
            f"{path}: ends early or late: its {size:,} bytes are not those of its header ({reason}); wait "
            "until it is written, or copy it again"
        )
    return CheckpointError(f"{path}: not a sound safetensors file: {reason[:200]}; copy it again")


def read_folder_headers(folder: Path) -> list[Header]:
    """Read the headers of a Hugging Face folder's files, sorted by name; check them against its index."""
    headers = [read_header(path) for path in folder_files(folder)]
    if not exists(folder / _INDEX):
        return headers
    places = {*_weight_map(folder / _INDEX).items()}
    there = {(tensor, header.path.name) for header in headers for tensor in header.tensors}
    for tensor, name in sorted(places ^ there):
        verb = "holds" if (tensor, name) in there else "lacks"
        raise IncompleteCheckpoint(
            f"{folder / name}: {verb} {tensor}, against {_INDEX}; wait until it is downloaded, or download "
            "both again"
        )
    return headers


def folder_files(folder: Path) -> list[Path]:
    """Return the weight files of a Hugging Face folder by its index, or its only one; raise as above."""
    single, index = folder / _SINGLE, folder / _INDEX
    shards = sorted(folder.glob("model-*-of-*.safetensors"))
    if exists(index):
        names = sorted({*_weight_map(index).values()})
        if exists(single) and _SINGLE not in names:
            raise _two_candidates(single, index)
        absent = [name for name in names if not exists(folder / name)]
        if absent:
            raise IncompleteCheckpoint(
                f"{folder / absent[0]}: missing, though {_INDEX} names it; wait until it is downloaded, or "
                "copy it"
            )
        return [folder / name for name in names]
    if exists(single):
        if shards:
            raise _two_candidates(single, shards[0])
        return [single]
    pickled = sorted(folder.glob("pytorch_model*.bin"))
    if pickled:
        raise UnsupportedCheckpoint(
            f"{pickled[0]}: pickled weights are never opened; save the model as safetensors "
            "(`save_pretrained`) first"
        )
    raise IncompleteCheckpoint(
        f"{single}: missing, and so is {_INDEX}; the folder has a config.json but no weights"
    )


def _two_candidates(path: Path, other: Path) -> CheckpointError:
    return CheckpointError(
        f"{path}: the weights of a model, and so are those of {other.name} in the same folder; remove the "
        "older ones"
    )


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
    """Return the safetensors files below `checkpoint/model`, sorted."""
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
