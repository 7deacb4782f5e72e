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
    r"(?P<tp>_pp-rank-\d+-of-\d+_tp-rank-\d+-of-\d+(?:_exp-rank-\d+-of-\d+)?)?"
    r"\.safetensors$"
)
_SHAPE = re.compile(r"\((?:[0-9]{1,18}(?:, ?[0-9]{1,18})*,?)?\)")
_SLICE = re.compile(r"(None|-?[0-9]{1,18}), ?(None|-?[0-9]{1,18}), ?(?:None|1)")

Slices = tuple[tuple[int, int], ...]
"""A region of a tensor: (start, stop) in each dimension."""


@dataclass(frozen=True)
class SlicesPair:
    """A region of a shard, and the same region within the whole tensor."""

    local: Slices
    whole: Slices


@dataclass(frozen=True)
class Shard:
    """One weight file, which holds one tensor."""

    header: Header
    dtype: str
    whole_shape: tuple[int, ...]
    pairs: tuple[SlicesPair, ...]

    @property
    def path(self) -> Path:
        """The weight file."""
        return self.header.path


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
        header = read_header(path)
        if match is None or list(header.tensors) != ["data"]:
            raise CheckpointError(
                f"{path}: not a Nanotron weight file: it holds {sorted(header.tensors)[:3]}, or has another "
                "name than `model_….safetensors`; move it out of the checkpoint"
            )
        folders = path.parent.relative_to(checkpoint / "model").parts
        by_name.setdefault(".".join((*folders, match["last"])), []).append(_shard(header, match))
    return {name: _join(name, shards) for name, shards in sorted(by_name.items())}


def _shard(header: Header, match: re.Match[str]) -> Shard:
    (dtype, shape), text = header.tensors["data"], header.metadata.get("local_global_slices_pairs")
    if text is None:
        if match["tp"]:
            raise UnsupportedCheckpoint(
                f"{header.path}: a shard without `local_global_slices_pairs` in its metadata, so that its "
                "place is not known; copy it again, or save with expert_parallel_size 1"
            )
        whole = tuple((0, size) for size in shape)
        return Shard(header, dtype, shape, (SlicesPair(whole, whole),))
    # Written as `(128, 64)`, or by numpy 2 as `(np.int64(128), 64)`.
    plain = re.sub(r"np\.int64\(([0-9]+)\)", r"\1", header.metadata.get("unsharded_shape", ""))
    whole_shape = tuple(map(int, re.findall("[0-9]+", plain))) if _SHAPE.fullmatch(plain) else ()
    pairs = [(one.partition("#")[0], one.partition("#")[2]) for one in text.split(";")]
    found = [(_slices(left, shape), _slices(right, whole_shape)) for left, right in pairs]
    known = [SlicesPair(a, b) for a, b in found if a and b and _sizes(a) == _sizes(b)]
    if len(known) < len(pairs) or coverage_problem([pair.local for pair in known], shape):
        raise CheckpointError(
            f"{header.path}: its slices {text[:80]!r} of {plain[:80]!r} are not regions of the tensor, or do "
            f"not fit its shape {shape}; copy the file again"
        )
    return Shard(header, dtype, whole_shape, tuple(known))


def _join(name: str, shards: list[Shard]) -> Parameter:
    first = shards[0]
    shape, dtype = first.whole_shape, first.dtype
    for shard in shards:
        if (shard.whole_shape, shard.dtype) != (shape, dtype) or dtype not in TORCH_NAMES:
            raise CheckpointError(
                f"{shard.path}: dtype {shard.dtype}, shape {shard.whole_shape}; expected one of "
                f"{', '.join(TORCH_NAMES)}, and {shape} as in {first.path.name}; copy the checkpoint again"
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


def _sizes(region: Slices) -> list[int]:
    return [stop - start for start, stop in region]


def _slices(text: str, shape: tuple[int, ...]) -> Slices | None:
    """Return a region of a tensor; None if the text is none."""
    parts = [_SLICE.fullmatch(part) for part in text.split("|")]
    if len(parts) != len(shape) or None in parts:
        return None
    bounds = [[None if v == "None" else int(v) for v in part.groups()] for part in parts if part]
    region = tuple(slice(*b).indices(size)[:2] for b, size in zip(bounds, shape, strict=True))
    beyond = any(abs(v or 0) > size for b, size in zip(bounds, shape, strict=True) for v in b)
    return None if beyond or any(start >= stop for start, stop in region) else region


def coverage_problem(regions: list[Slices], shape: tuple[int, ...]) -> str | None:
    """Return which regions of a tensor overlap, or how much of it they leave out; None if neither."""
    edges = np.array(regions, dtype=np.int64).reshape(len(regions), len(shape), 2)
    first, stop = edges[:, None, :, 0], edges[None, :, :, 1]
    meets = ((first < stop) & (first.swapaxes(0, 1) < stop.swapaxes(0, 1))).all(-1)
    for number, other in np.argwhere(np.triu(meets, 1))[:1]:
        return f"{regions[number]} and {regions[other]} overlap"
    covered = sum(math.prod(_sizes(region)) for region in regions)
    whole = math.prod(shape)
    return None if covered == whole else f"{whole - covered:,} of {whole:,} elements are missing"
