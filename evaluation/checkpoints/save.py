"""Write checkpoints in the format of Nanotron's trainer, as shards that record their slices."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from evaluation.checkpoints.config_files import CONFIG_FILES
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.mapping import TensorSource
from evaluation.checkpoints.shards import Shard
from evaluation.checkpoints.training import METADATA
from evaluation.checkpoints.weights import merged_parameters
from evaluation.errors import CheckpointError
from evaluation.files import temporary_path

VERSION = "1.5"
"""Version of the checkpoint format."""

_BY_ROWS = ("token_embedding", "lm_head", "qkv_proj", "gate_up_proj")
_BY_COLUMNS = ("o_proj", "down_proj")
_ALL = "None,None,None"


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Make a temporary folder that is renamed to `target` once the block succeeds, and else removed.

    Raises:
        CheckpointError: `target` exists already, or cannot be written.
    """
    if os.path.lexists(target):
        raise CheckpointError(f"{target}: is there already; remove it or choose another")
    temporary = temporary_path(target)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        os.rename(temporary, target)
    except OSError as error:
        raise CheckpointError(
            f"{target}: cannot be written ({error.strerror}); free disk space or choose another target"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_parameters(
    folder: Path,
    expected: dict[str, TensorSource],
    tensor: Callable[[str], torch.Tensor],
    *,
    tp: int,
) -> None:
    """Write every expected parameter below `folder/model`, one at a time.

    Args:
        tp: Tensor-parallel size: number of shards of each parameter that is split.

    Raises:
        CheckpointError: The disk is full or cannot be written.
    """
    for name, source in expected.items():
        whole = tensor(name)
        *parents, last = name.split(".")
        place = folder.joinpath("model", *parents)
        dimension = _split_dimension(name)
        if dimension is None:
            _save_shard(place / f"model_{last}.safetensors", whole, {})
            continue
        for rank in range(tp):
            shard, pairs = _shard(whole, dimension, source, rank, tp)
            label = f"pp-rank-0-of-1_tp-rank-{rank}-of-{tp}"
            metadata = {
                "version": VERSION,
                "unsharded_shape": str(tuple(whole.shape)),
                "local_global_slices_pairs": pairs,
            }
            _save_shard(place / f"model_{last}_{label}.safetensors", shard, metadata)


def _split_dimension(name: str) -> int | None:
    """Return the dimension along which tensor parallelism splits a parameter; None if it is not split."""
    layers = set(name.split("."))
    if layers.intersection(_BY_ROWS):
        return 0
    return 1 if layers.intersection(_BY_COLUMNS) else None


def _shard(
    whole: torch.Tensor, dimension: int, source: TensorSource, rank: int, tp: int
) -> tuple[torch.Tensor, str]:
    """Return a rank's shard, with a part of each tensor that is joined in the whole, and its slices pairs."""
    parts = [(target.start, target.stop) for target in source.targets]
    if dimension == 1:
        parts = [(0, whole.shape[1])]
    taken, pairs, local = [], [], 0
    for start, stop in parts:
        size = (stop - start) // tp
        first = start + rank * size
        taken.append(whole.narrow(dimension, first, size))
        here = f"{local},{local + size},None" if len(parts) > 1 else _ALL
        pairs.append(
            f"{_slices(here, dimension, whole.ndim)}"
            f"#{_slices(f'{first},{first + size},None', dimension, whole.ndim)}"
        )
        local += size
    return torch.cat(taken, dimension), ";".join(pairs)


def _slices(split: str, dimension: int, dimensions: int) -> str:
    return "|".join(split if index == dimension else _ALL for index in range(dimensions))


def _save_shard(path: Path, tensor: torch.Tensor, metadata: dict[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"data": tensor.contiguous()}, path, metadata)
        # safetensors makes files that only their owner can read; take the folder's permissions.
        path.chmod(path.parent.stat().st_mode & 0o666)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error}); free disk space or choose another target"
        ) from None


def write_merge(merge: Checkpoint, target: Path) -> None:
    """Write a merge as a checkpoint, sharded and configured as its main member.

    Raises:
        CheckpointError: The folder exists already or cannot be written, or a member is unsound.
    """
    with new_folder(target) as folder:
        for parameter, _, mean in merged_parameters(merge):
            for shard in parameter.shards:
                path = folder / shard.path.relative_to(merge.path)
                _save_shard(path, _part(mean, shard), shard.header.metadata)
        for name in (*CONFIG_FILES, METADATA):
            if (merge.path / name).is_file():
                shutil.copy(merge.path / name, folder / name)


def _part(whole: torch.Tensor, shard: Shard) -> torch.Tensor:
    part = torch.empty(shard.entry.shape, dtype=whole.dtype)
    for pair in shard.pairs:
        local, place = ([slice(*ends) for ends in side] for side in (pair.local, pair.whole))
        part[tuple(local)] = whole[tuple(place)]
    return part
