"""Read Nanotron's weight files: each holds a shard of one parameter, and records its slices of the whole.

A parameter's dotted name is its folder below `model/`, plus the last part inside the file name:

    unsharded   <folders>/model_<last>.safetensors
    sharded     <folders>/model_<last>_pp-rank-<p>-of-<P>_tp-rank-<t>-of-<T>.safetensors
    by experts  … _exp-rank-<e>-of-<E>.safetensors
    Mar 2024    <folders>/model_model_<last>.safetensors_pp-rank-…_tp-rank-….safetensors

The metadata of a shard holds the whole tensor's `unsharded_shape` and `local_global_slices_pairs`,
written `LOCAL#GLOBAL;…`, each side `start,stop,step|…`: the region LOCAL of the shard is the region
GLOBAL of the whole. Only these pairs tell how shards join: a shard of a query-key-value matrix holds a
part of each of the three.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.checkpoints.headers import TORCH_NAMES, Header, read_header, weight_files
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

_FILE_NAME = re.compile(
    r"^model_(?:model_)?(?P<last>.+?)(?:\.safetensors)?"
    r"(?:_pp-rank-\d+-of-(?P<pp>\d+)_tp-rank-\d+-of-(?P<tp>\d+)(?P<exp>_exp-rank-\d+-of-\d+)?)?"
    r"\.safetensors$"
)
_SLICE = re.compile(r"\s*(None|-?\d{1,18})\s*,\s*(None|-?\d{1,18})\s*,\s*(?:None|1)\s*", re.ASCII)

_MOST_REGIONS = 4096
"""Regions of one tensor; a thousand ranks make three thousand."""

Slices = tuple[tuple[int, int], ...]
"""A region of a tensor: (start, stop) in each dimension."""


@dataclass(frozen=True)
class SlicesPair:
    """A region of a shard, and the same region within the whole tensor."""

    local: Slices
    whole: Slices


@dataclass(frozen=True)
class Shard:
    """One weight file; numbers of ranks are informative only, as names and layer numbers are global."""

    header: Header
    whole_shape: tuple[int, ...]
    pairs: tuple[SlicesPair, ...]
    tp: int
    pp: int

    @property
    def path(self) -> Path:
        """The weight file."""
        return self.header.path

    @property
    def dtype(self) -> str:
        """Dtype of the file's one tensor."""
        return self.header.tensors["data"].dtype


@dataclass(frozen=True)
class Parameter:
    """A whole tensor, each element of which is in exactly one of the shards."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    shards: tuple[Shard, ...]


def read_parameters(checkpoint: Path) -> dict[str, Parameter]:
    """Return all parameters below `checkpoint/model` by Nanotron's name, sorted, from headers."""
    by_name: dict[str, list[Shard]] = {}
    for path in weight_files(checkpoint):
        match = _FILE_NAME.match(path.name)
        if match is None:
            raise _misplaced(path, "not a Nanotron weight file by its name")
        header = read_header(path)
        if list(header.tensors) != ["data"]:
            raise _misplaced(path, f"holds {sorted(header.tensors)}, not the one tensor 'data'")
        folders = path.parent.relative_to(checkpoint / "model").parts
        by_name.setdefault(".".join((*folders, match["last"])), []).append(_shard(header, match))
    return {name: _join(name, shards) for name, shards in sorted(by_name.items())}


def _misplaced(path: Path, problem: str) -> CheckpointError:
    return CheckpointError(f"{path}: {problem}; move it out of the checkpoint")


def _shard(header: Header, match: re.Match[str]) -> Shard:
    shape, text = header.tensors["data"].shape, header.metadata.get("local_global_slices_pairs")
    tp, pp = int(match["tp"] or 1), int(match["pp"] or 1)
    if text is not None:
        whole_shape = _whole_shape(header)
        pairs = tuple(_slices_pair(header.path, p, shape, whole_shape) for p in text.split(";"))
        if problem := coverage_problem([pair.local for pair in pairs], shape):
            raise CheckpointError(
                f"{header.path}: its slices do not fit its shape {shape}: {problem}; copy it again"
            )
        return Shard(header, whole_shape, pairs, tp, pp)
    if match["exp"]:
        raise UnsupportedCheckpoint(
            f"{header.path}: an expert-parallel shard that does not record which experts it holds; "
            "save the checkpoint again with expert_parallel_size 1"
        )
    if match["tp"]:
        raise CheckpointError(
            f"{header.path}: a shard without `local_global_slices_pairs` in its metadata; it cannot be "
            "placed, copy it again"
        )
    whole = tuple((0, size) for size in shape)
    return Shard(header, shape, (SlicesPair(whole, whole),), tp, pp)


def _join(name: str, shards: list[Shard]) -> Parameter:
    first = shards[0]
    shape, dtype = first.whole_shape, first.dtype
    for shard in shards:
        if (shard.whole_shape, shard.dtype) != (shape, dtype):
            raise CheckpointError(
                f"{shard.path}: {shard.dtype} of shape {shard.whole_shape}, but {first.path.name} has "
                f"{dtype} of {shape}; they are from different checkpoints, copy them again"
            )
    if dtype not in TORCH_NAMES:
        raise CheckpointError(
            f"{first.path}: dtype {dtype}, expected one of {', '.join(TORCH_NAMES)}; save the weights "
            "in one of these"
        )
    problem = coverage_problem([pair.whole for shard in shards for pair in shard.pairs], shape)
    if problem is None:
        return Parameter(name, shape, dtype, tuple(shards))
    kind = IncompleteCheckpoint if "missing" in problem else CheckpointError
    raise kind(
        f"{first.path.parent}: {name} is not covered exactly once by "
        f"{', '.join(shard.path.name for shard in shards[:4])}: {problem}; wait until it is written, remove "
        "the files that do not belong, or copy the checkpoint again"
    )


def _whole_shape(header: Header) -> tuple[int, ...]:
    """Return the whole tensor's shape, written as `(128, 64)` or, by numpy 2, as `(np.int64(128), 64)`."""
    text = header.metadata.get("unsharded_shape", "")
    plain = re.sub(r"np\.int64\(([0-9]{1,18})\)", r"\1", text)
    if not re.fullmatch(r"\((?:[0-9]{1,18}(?:, ?[0-9]{1,18})*,?)?\)", plain):
        raise CheckpointError(
            f"{header.path}: its `unsharded_shape` {text[:80]!r} is not a shape; copy it again"
        )
    return tuple(int(number) for number in re.findall(r"[0-9]+", plain))


def _slices_pair(
    path: Path, text: str, local_shape: tuple[int, ...], whole_shape: tuple[int, ...]
) -> SlicesPair:
    left, _, right = text.partition("#")
    local, whole = _slices(left, local_shape), _slices(right, whole_shape)
    if local and whole and [b - a for a, b in local] == [b - a for a, b in whole]:
        return SlicesPair(local, whole)
    raise CheckpointError(
        f"{path}: its slices {text[:80]!r} are not regions of the tensor; copy the file again"
    )


def _slices(text: str, shape: tuple[int, ...]) -> Slices | None:
    """Return a region of a tensor; None if the text is none."""
    parts = [_SLICE.fullmatch(part) for part in text.split("|")]
    if len(parts) != len(shape):
        return None
    region = []
    for part, size in zip(parts, shape, strict=True):
        start, stop = (None if v == "None" else int(v) for v in part.groups()) if part else (0, 0)
        first = 0 if start is None else start + size * (start < 0)
        last = size if stop is None else stop + size * (stop < 0)
        if not 0 <= first < last <= size:
            return None
        region.append((first, last))
    return tuple(region)


def coverage_problem(regions: list[Slices], shape: tuple[int, ...]) -> str | None:
    """Return which regions of a tensor overlap, or how much of it they leave out; None if neither."""
    if len(regions) > _MOST_REGIONS:
        return f"{len(regions)} regions, more than any trainer writes"
    edges = np.array(regions, dtype=np.int64).reshape(len(regions), len(shape), 2)
    first, stop = edges[:, None, :, 0], edges[None, :, :, 1]
    meets = ((first < stop) & (first.swapaxes(0, 1) < stop.swapaxes(0, 1))).all(-1)
    for number, other in np.argwhere(np.triu(meets, 1))[:1]:
        return f"{regions[number]} and {regions[other]} overlap"
    covered = sum(math.prod(b - a for a, b in region) for region in regions)
    whole = math.prod(shape)
    return None if covered == whole else f"{whole - covered:,} of {whole:,} elements are missing"
