"""Nanotron's weight files: one parameter in one or more shards, each saying what it covers.

A parameter's dotted name is its folder below `model/`, plus the last part inside the file name:

    unsharded   <folders>/model_<last>.safetensors
    sharded     <folders>/model_<last>_pp-rank-<p>-of-<P>_tp-rank-<t>-of-<T>.safetensors
    by experts  … _exp-rank-<e>-of-<E>.safetensors
    Mar 2024    <folders>/model_model_<last>.safetensors_pp-rank-…_tp-rank-….safetensors

A sharded file's metadata holds the whole tensor's shape and, as pairs `LOCAL#GLOBAL`, which region
of the shard is which region of the whole. Only these regions say how shards join: a shard of a
query-key-value matrix holds a part of each of the three.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.headers import Header, TensorEntry, read_header
from evaluation.checkpoints.slices import Piece, parse_pieces, uncovered, unsharded_shape
from evaluation.checkpoints.state import MOST_FILES
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint

_FILE_NAME = re.compile(
    r"^model_(?:model_)?(?P<last>.+?)(?:\.safetensors)?"
    r"(?:_pp-rank-(?P<pp>\d+-of-\d+)_tp-rank-(?P<tp>\d+-of-\d+)(?:_exp-rank-(?P<exp>\d+-of-\d+))?)?"
    r"\.safetensors$"
)
_UNFINISHED = re.compile(r"\.safetensors[^/]+$|\.(?:tmp|temp|part|partial|incomplete|filepart)$")
_WEIGHT_DTYPES = ("F32", "BF16", "F16", "F64")


@dataclass(frozen=True)
class Shard:
    """One weight file."""

    header: Header
    whole_shape: tuple[int, ...]
    pieces: tuple[Piece, ...]
    tp: str | None
    """`<rank>-of-<ranks>`; None for an unsharded file."""
    pp: int = 1
    """Pipeline ranks; only a label, as names and layer numbers are global."""

    @property
    def path(self) -> Path:
        return self.header.path

    @property
    def entry(self) -> TensorEntry:
        return self.header.tensors["data"]


@dataclass(frozen=True)
class Parameter:
    """A whole tensor, each element of which is in exactly one of the shards."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    shards: tuple[Shard, ...]


def read_parameters(checkpoint: Path) -> dict[str, Parameter]:
    """All parameters below `checkpoint/model`, from the files' headers.

    Raises IncompleteCheckpoint for parts that are missing, CheckpointError for files that do not
    belong or disagree, UnsupportedCheckpoint for expert-parallel shards that do not say their place.
    """
    found: dict[str, list[Shard]] = {}
    for path in weight_files(checkpoint):
        name, shard = _read_shard(path, checkpoint / "model")
        found.setdefault(name, []).append(shard)
    _check_same_tp(shard for shards in found.values() for shard in shards)
    return {name: _join(name, shards) for name, shards in sorted(found.items())}


def weight_files(checkpoint: Path) -> list[Path]:
    """Safetensors files below `checkpoint/model`, sorted; refuses leftovers of an unfinished write."""
    folder = checkpoint / "model"
    if not folder.is_dir():
        raise IncompleteCheckpoint(f"{folder}: no such folder; the checkpoint has no weights")
    files = []
    for parent, names in _folders(folder):
        for name in names:
            if name.endswith(".safetensors") and not name.startswith("."):
                files.append(Path(parent, name))
            elif _UNFINISHED.search(name):
                raise IncompleteCheckpoint(
                    f"{Path(parent, name)}: an unfinished file; wait until the checkpoint is "
                    "written or copied, or delete the file if nothing writes it any more"
                )
    if not files:
        raise IncompleteCheckpoint(f"{folder}: no safetensors files; the checkpoint has no weights")
    return sorted(files)


def _folders(top: Path) -> Iterator[tuple[str, list[str]]]:
    """Each folder below `top`, itself included, and its files; a link may lead anywhere."""
    count = 0
    for parent, folders, names in os.walk(top, onerror=_raise_unreadable):
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
        yield parent, names


def _raise_unreadable(error: OSError) -> None:
    raise CheckpointError(
        f"{error.filename}: cannot be read ({error.strerror}); make it readable, or copy it again"
    )


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
    return name, _place(header, match)


def _place(header: Header, match: re.Match[str]) -> Shard:
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
        return Shard(header, shape, (Piece(whole, whole),), None)
    whole_shape = unsharded_shape(header)
    return Shard(
        header,
        whole_shape,
        parse_pieces(header.path, text, shape, whole_shape),
        match["tp"],
        int(match["pp"].split("-")[-1]) if match["pp"] else 1,
    )


def _join(name: str, shards: list[Shard]) -> Parameter:
    first = shards[0]
    shape, dtype = first.whole_shape, first.entry.dtype
    for shard in shards:
        if shard.whole_shape != shape or shard.entry.dtype != dtype:
            raise CheckpointError(
                f"{shard.path}: {shard.entry.dtype} of shape {shard.whole_shape}, but {first.path.name} says "
                f"{dtype} of {shape}; they are of different checkpoints, copy them again"
            )
    if dtype not in _WEIGHT_DTYPES:
        raise CheckpointError(
            f"{first.path}: dtype {dtype}, expected one of {_WEIGHT_DTYPES}; save the weights in one of these"
        )
    problem = uncovered([piece.whole for shard in shards for piece in shard.pieces], shape)
    if problem is not None:
        raise _not_covered(name, shards, problem)
    return Parameter(name, shape, dtype, tuple(shards))


def _not_covered(name: str, shards: list[Shard], problem: str) -> CheckpointError:
    """Names a shard that is absent if one is, otherwise those that are there."""
    path = shards[0].path
    present = {shard.tp for shard in shards}
    if shards[0].tp is not None:
        ranks = shards[0].tp.split("-")[-1]
        every = (f"{rank}-of-{ranks}" for rank in range(int(ranks)))
        absent = next((tp for tp in every if tp not in present), None)
        if absent is not None:
            lacking = path.name.replace(f"tp-rank-{shards[0].tp}", f"tp-rank-{absent}")
            return IncompleteCheckpoint(
                f"{path.with_name(lacking)}: this shard of {name} is missing; wait until it is "
                "written, or copy it again"
            )
    files = ", ".join(shard.path.name for shard in shards[:4])
    return CheckpointError(
        f"{path.parent}: {name} is not covered exactly once by {files}: {problem}; "
        "remove the files that do not belong, or copy the checkpoint again"
    )


def _check_same_tp(shards: Iterator[Shard]) -> None:
    first: Shard | None = None
    for shard in shards:
        if shard.tp is None:
            continue
        first = first or shard
        if first.tp is not None and shard.tp.split("-")[-1] != first.tp.split("-")[-1]:
            raise CheckpointError(
                f"{shard.path}: of another tensor-parallel size than {first.path}; two checkpoints "
                "were saved into one folder, remove the older one's files"
            )
