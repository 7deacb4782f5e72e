"""Find a checkpoint's safetensors files, and read their headers.

A Hugging Face folder has one file, or an index of several. What else looks like its weights is refused,
because another program could load it.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

from evaluation.checkpoints.config_files import exists, os_errors_named, read_table
from evaluation.errors import CheckpointError, IncompleteCheckpoint

TORCH_NAMES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Dtypes that weights can have, with their names in torch."""

_OTHER_SIZE = ("header too small", "invalid header length", "incomplete metadata")
"""How the library's errors begin for a file that ends early or late."""

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


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
    with os_errors_named(path), open(path, "rb") as file:
        status = os.fstat(file.fileno())
        try:
            with safe_open(path, framework="numpy") as content:
                slices = {name: content.get_slice(name) for name in {*content.keys()}}
                metadata = content.metadata() or {}
        except SafetensorError as error:
            reason = str(error).removeprefix("Error while deserializing header: ")[:200]
            kind, what = CheckpointError, "not a sound safetensors file"
            if reason.startswith(_OTHER_SIZE):
                kind, what = IncompleteCheckpoint, "ends early or late"
            raise kind(
                f"{path}: {what} ({reason}; it has {status.st_size:,} bytes); wait until it is written, or "
                "copy it again"
            ) from None
    tensors = {n: TensorEntry(s.get_dtype(), tuple(s.get_shape())) for n, s in slices.items()}
    if not tensors:
        raise CheckpointError(f"{path}: not a sound safetensors file: it holds no tensors")
    return Header(path, tensors, metadata, status.st_size, status.st_mtime_ns)


def read_folder_headers(folder: Path) -> list[Header]:
    """Read the headers of a Hugging Face folder's files; check them against its index, if it has one."""
    single, index = folder / _SINGLE, folder / _INDEX
    shards = sorted(folder.glob("model-*-of-*.safetensors"))
    places = _weight_map(index) if exists(index) else {}
    names = sorted({*places.values()}) or [_SINGLE]
    others = [path for path in (index, *shards) if exists(path)] if exists(single) else []
    if others and (not places or _SINGLE not in names):
        raise CheckpointError(
            f"{single}: the weights of a model, and so are those of {others[0].name} in the same folder; "
            "remove the older ones"
        )
    if absent := [name for name in names if not exists(folder / name)]:
        raise IncompleteCheckpoint(
            f"{folder / absent[0]}: missing; wait until it is downloaded, or save the model as safetensors "
            "(`save_pretrained`): no other weights are read"
        )
    headers = [read_header(folder / name) for name in names]
    there = {(tensor, header.path.name) for header in headers for tensor in header.tensors}
    for tensor, name in sorted({*places.items()} ^ there) if places else ():
        verb = "holds" if (tensor, name) in there else "lacks"
        raise IncompleteCheckpoint(
            f"{folder / name}: {verb} {tensor}, against {_INDEX}; wait until it is downloaded, or download "
            "both again"
        )
    return headers


def _weight_map(path: Path) -> dict[str, str]:
    places: Any = read_table(path).get("weight_map")
    names = places.values() if isinstance(places, dict) else ()
    if not names or not all(isinstance(n, str) and re.fullmatch(r"[^/\0]+\.\w+", n) for n in names):
        raise CheckpointError(f"{path}: `weight_map` is no table of file names; download it again")
    return dict(places)


def weight_files(checkpoint: Path) -> list[Path]:
    """Return the safetensors files below `checkpoint/model`, sorted; links to folders are not followed."""
    folder = checkpoint / "model"
    with os_errors_named(folder):
        files = sorted(p for p in folder.rglob("*.safetensors") if not p.name.startswith("."))
    if not files:
        raise IncompleteCheckpoint(f"{folder}: no safetensors files; the checkpoint has no weights")
    return files
