"""Nanotron's weight files: one parameter in one or more shards, each recording its slices of the whole.

A parameter's dotted name is its folder below `model/`, plus the last part inside the file name:

    unsharded   <folders>/model_<last>.safetensors
    sharded     <folders>/model_<last>_pp-rank-<p>-of-<P>_tp-rank-<t>-of-<T>.safetensors
    by experts  … _exp-rank-<e>-of-<E>.safetensors
    Mar 2024    <folders>/model_model_<last>.safetensors_pp-rank-…_tp-rank-….safetensors

Which part of the whole a shard is, its metadata tells (`slices`).
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.config_files import os_errors_named
from evaluation.checkpoints.headers import TORCH_NAMES, Header, TensorEntry, read_header
from evaluation.checkpoints.slices import (
    SlicesPair,
    coverage_problem,
    parse_slices_pairs,
    unsharded_shape,
)
from evaluation.checkpoints.state import MOST_FILES
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

_FILE_NAME = re.compile(
    r"^model_(?:model_)?(?P<last>.+?)(?:\.safetensors)?"
    r"(?:_pp-rank-(?P<pp>\d+-of-\d+)_tp-rank-(?P<tp>\d+-of-\d+)(?:_exp-rank-(?P<exp>\d+-of-\d+))?)?"
    r"\.safetensors$"
)
_UNFINISHED = re.compile(r"\.safetensors[^/]+$|\.(?:tmp|temp|part|partial|incomplete|filepart)$")


@dataclass(frozen=True)
class Shard:
    """One weight file."""

    header: Header
    whole_shape: tuple[int, ...]
    pairs: tuple[SlicesPair, ...]
    tp: str | None
    """`<rank>-of-<ranks>`; None for an unsharded file."""
    pp: int = 1
    """Pipeline ranks; only a label, as names and layer numbers are global."""

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
    """Return all parameters below `checkpoint/model`, from the files' headers.

    Args:
        checkpoint: Folder of a Nanotron step.

    Returns:
        Parameters by Nanotron's name, sorted.

    Raises:
        IncompleteCheckpoint: A part is missing.
        CheckpointError: A file does not belong there, or files disagree.
        UnsupportedCheckpoint: An expert-parallel shard does not record its slices.
    """
    found: dict[str, list[Shard]] = {}
    for path in weight_files(checkpoint):
        name, shard = _read_shard(path, checkpoint / "model")
        found.setdefault(name, []).append(shard)
    _check_same_tp([shard for shards in found.values() for shard in shards])
    return {name: _join(name, shards) for name, shards in sorted(found.items())}


def weight_files(checkpoint: Path) -> list[Path]:
    """Return the safetensors files below `checkpoint/model`.

    Args:
        checkpoint: Folder of a Nanotron step.

    Returns:
        The files, sorted.

    Raises:
        IncompleteCheckpoint: There is none, or an unfinished one.
        CheckpointError: There is a link to a folder, or there are too many files.
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
                "written or copied, or delete the file if nothing writes it any more"
            )
    if not files:
        raise IncompleteCheckpoint(f"{folder}: no safetensors files; the checkpoint has no weights")
    return sorted(files)


def _files_below(top: Path) -> Iterator[Path]:
    """Yield all files; raise CheckpointError for a link to a folder, which may lead anywhere."""

    def refuse(error: OSError) -> None:
        raise error

    count = 0
    with os_errors_named(top):
        for parent, folders, names in os.walk(top, onerror=refuse):
            for path in (os.path.join(parent, folder) for folder in folders):
                if os.path.islink(path):
                    raise CheckpointError(
                        f"{path}: a link to the folder {os.path.realpath(path)}, which is not followed; "
                        "remove it, or copy the folder to its place"
                    )
            count += len(names)
            if count > MOST_FILES:
                raise CheckpointError(
                    f"{top}: more than {MOST_FILES:,} files, which no checkpoint has; correct what it "
                    "links to, or move what does not belong out of it"
                )
            yield from (Path(parent, name) for name in names)


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
                f"{header.path}: an expert-parallel shard that does not say which experts it holds; "
                "save the checkpoint again with expert_parallel_size 1"
            )
        if match["tp"] is not None:
            raise CheckpointError(
                f"{header.path}: a shard without `local_global_slices_pairs` in its metadata; "
                "it cannot be placed, copy it again"
            )
        whole = tuple((0, size) for size in shape)
        return Shard(header, shape, (SlicesPair(whole, whole),), None)
    whole_shape = unsharded_shape(header)
    pairs = parse_slices_pairs(header.path, text, shape, whole_shape)
    pp_ranks = int(match["pp"].split("-")[-1]) if match["pp"] else 1
    return Shard(header, whole_shape, pairs, match["tp"], pp_ranks)


def _join(name: str, shards: list[Shard]) -> Parameter:
    first = shards[0]
    shape, dtype = first.whole_shape, first.entry.dtype
    for shard in shards:
        if shard.whole_shape != shape or shard.entry.dtype != dtype:
            raise CheckpointError(
                f"{shard.path}: {shard.entry.dtype} of shape {shard.whole_shape}, but {first.path.name} says "
                f"{dtype} of {shape}; they are of different checkpoints, copy them again"
            )
    if dtype not in TORCH_NAMES:
        raise CheckpointError(
            f"{first.path}: dtype {dtype}, expected one of {', '.join(TORCH_NAMES)}; save the weights in one of these"
        )
    problem = coverage_problem([pair.whole for shard in shards for pair in shard.pairs], shape)
    if problem is not None:
        raise _not_covered(name, shards, problem)
    return Parameter(name, shape, dtype, tuple(shards))


def _not_covered(name: str, shards: list[Shard], problem: str) -> CheckpointError:
    """Name a shard that is absent if one is, otherwise those that are there."""
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
                f"{path}: of another tensor-parallel size than {sharded[0][0]}; two checkpoints "
                "were saved into one folder, remove the older one's files"
            )
