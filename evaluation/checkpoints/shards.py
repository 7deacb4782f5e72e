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

from evaluation.checkpoints.headers import (
    TORCH_NAMES,
    Header,
    TensorEntry,
    read_header,
    weight_files,
)
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

_FILE_NAME = re.compile(
    r"^model_(?:model_)?(?P<last>.+?)(?:\.safetensors)?"
    r"(?:_pp-rank-(?P<pp>\d+-of-\d+)_tp-rank-(?P<tp>\d+-of-\d+)(?:_exp-rank-(?P<exp>\d+-of-\d+))?)?"
    r"\.safetensors$"
)

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
    """One weight file."""

    header: Header
    whole_shape: tuple[int, ...]
    pairs: tuple[SlicesPair, ...]
    tp: str | None
    """`<rank>-of-<ranks>`; None for an unsharded file."""
    pp: int = 1
    """Number of pipeline ranks; informative only, as names and layer numbers are global."""

    @property
    def path(self) -> Path:
        """The weight file."""
        return self.header.path

    @property
    def entry(self) -> TensorEntry:
        """The file's one tensor."""
        return self.header.tensors["data"]


@dataclass(frozen=True)
class Parameter:
    """A whole tensor, each element of which is in exactly one of the shards."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    shards: tuple[Shard, ...]


def read_parameters(checkpoint: Path) -> dict[str, Parameter]:
    """Return all parameters below `checkpoint/model` by Nanotron's name, sorted, from headers.

    Raises:
        IncompleteCheckpoint: A part is missing.
        CheckpointError: A file does not belong there, or files disagree.
        UnsupportedCheckpoint: An expert-parallel shard does not record its slices.
    """
    by_name: dict[str, list[Shard]] = {}
    for path in weight_files(checkpoint):
        name, shard = _read_shard(path, checkpoint / "model")
        by_name.setdefault(name, []).append(shard)
    _check_same_tp([shard for shards in by_name.values() for shard in shards])
    return {name: _join(name, shards) for name, shards in sorted(by_name.items())}


def _read_shard(path: Path, folder: Path) -> tuple[str, Shard]:
    match = _FILE_NAME.match(path.name)
    if match is None:
        raise CheckpointError(
            f"{path}: not a Nanotron weight file by its name; move it out of the checkpoint"
        )
    header = read_header(path)
    if list(header.tensors) != ["data"]:
        raise CheckpointError(
            f"{path}: holds {sorted(header.tensors)} where a Nanotron weight file holds one tensor, "
            "'data'; move it out of the checkpoint"
        )
    name = ".".join((*path.parent.relative_to(folder).parts, match["last"]))
    return name, _shard(header, match)


def _shard(header: Header, match: re.Match[str]) -> Shard:
    shape = header.tensors["data"].shape
    text = header.metadata.get("local_global_slices_pairs")
    if text is None:
        if match["exp"] is not None:
            raise UnsupportedCheckpoint(
                f"{header.path}: an expert-parallel shard that does not record which experts it holds; "
                "save the checkpoint again with expert_parallel_size 1"
            )
        if match["tp"] is not None:
            raise CheckpointError(
                f"{header.path}: a shard without `local_global_slices_pairs` in its metadata; "
                "it cannot be placed, copy it again"
            )
        whole = tuple((0, size) for size in shape)
        return Shard(header, shape, (SlicesPair(whole, whole),), None)
    whole_shape = _whole_shape(header)
    pairs = _slices_pairs(header.path, text, shape, whole_shape)
    pp_ranks = int(match["pp"].split("-")[-1]) if match["pp"] else 1
    return Shard(header, whole_shape, pairs, match["tp"], pp_ranks)


def _join(name: str, shards: list[Shard]) -> Parameter:
    first = shards[0]
    shape, dtype = first.whole_shape, first.entry.dtype
    for shard in shards:
        if shard.whole_shape != shape or shard.entry.dtype != dtype:
            raise CheckpointError(
                f"{shard.path}: {shard.entry.dtype} of shape {shard.whole_shape}, but {first.path.name} has "
                f"{dtype} of {shape}; they are from different checkpoints, copy them again"
            )
    if dtype not in TORCH_NAMES:
        raise CheckpointError(
            f"{first.path}: dtype {dtype}, expected one of {', '.join(TORCH_NAMES)}; save the weights "
            "in one of these"
        )
    problem = coverage_problem([pair.whole for shard in shards for pair in shard.pairs], shape)
    if problem is not None:
        raise _not_covered(name, shards, problem)
    return Parameter(name, shape, dtype, tuple(shards))


def _not_covered(name: str, shards: list[Shard], problem: str) -> CheckpointError:
    """Return an error that names a missing shard, or all shards if none is missing."""
    path, tp = shards[0].path, shards[0].tp
    if tp is not None:
        present, ranks = {shard.tp for shard in shards}, tp.split("-")[-1]
        every = (f"{rank}-of-{ranks}" for rank in range(int(ranks)))
        absent = next((label for label in every if label not in present), None)
        if absent is not None:
            lacking = path.name.replace(f"tp-rank-{tp}", f"tp-rank-{absent}")
            return IncompleteCheckpoint(
                f"{path.with_name(lacking)}: this shard of {name} is missing; wait until it is "
                "written, or copy it again"
            )
    files = ", ".join(shard.path.name for shard in shards[:4])
    return CheckpointError(
        f"{path.parent}: {name} is not covered exactly once by {files}: {problem}; "
        "remove the files that do not belong, or copy the checkpoint again"
    )


def _check_same_tp(shards: list[Shard]) -> None:
    sharded = [(shard.path, shard.tp.split("-")[-1]) for shard in shards if shard.tp is not None]
    for path, ranks in sharded:
        if ranks != sharded[0][1]:
            raise CheckpointError(
                f"{path}: has another tensor-parallel size than {sharded[0][0]}; two checkpoints "
                "were saved into one folder, remove the files of the older one"
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


def _slices_pairs(
    path: Path, text: str, local_shape: tuple[int, ...], whole_shape: tuple[int, ...]
) -> tuple[SlicesPair, ...]:
    """Read `local_global_slices_pairs`, which must cover the shard exactly once."""
    pairs = []
    for part in text.split(";"):
        sides = part.split("#")
        if len(sides) != 2:
            raise _bad_slices(path, part)
        pair = SlicesPair(
            _slices(path, sides[0], local_shape), _slices(path, sides[1], whole_shape)
        )
        if [b - a for a, b in pair.local] != [b - a for a, b in pair.whole]:
            raise _bad_slices(path, part)
        pairs.append(pair)
    problem = coverage_problem([pair.local for pair in pairs], local_shape)
    if problem:
        raise CheckpointError(
            f"{path}: its slices do not fit its shape {local_shape}: {problem}; copy it again"
        )
    return tuple(pairs)


def _slices(path: Path, text: str, shape: tuple[int, ...]) -> Slices:
    parts = text.split("|")
    if len(parts) != len(shape):
        raise _bad_slices(path, text)
    return tuple(_slice(path, part, size) for part, size in zip(parts, shape, strict=True))


def _slice(path: Path, text: str, size: int) -> tuple[int, int]:
    match = re.fullmatch(
        r"\s*(None|-?[0-9]{1,18})\s*,\s*(None|-?[0-9]{1,18})\s*,\s*(None|1)\s*", text
    )
    if match is None:
        raise _bad_slices(path, text)
    start, stop = (None if part == "None" else int(part) for part in match.groups()[:2])
    first = 0 if start is None else start + size * (start < 0)
    last = size if stop is None else stop + size * (stop < 0)
    if not 0 <= first < last <= size:
        raise _bad_slices(path, text)
    return first, last


def _bad_slices(path: Path, text: str) -> CheckpointError:
    return CheckpointError(
        f"{path}: its slices {text[:80]!r} are not regions of the tensor; copy the file again"
    )


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
