"""The weights of a merge, a tensor at a time: read from the members' shards, in float32.

A running mean: after a member of weight w, with weights that sum to W so far,

    mean += (w / W) (member - mean)

so that equal members give themselves to the bit, whatever their weights. Each operation is rounded by
itself, so that every machine gets the same bits. The mean is rounded to the dtype that the members have
saved the tensor in, if it is one: what is scored is what `write_merge` writes. Memory is that of two
tensors, the mean and a member's.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import torch

from evaluation.checkpoints.completeness import check_unchanged, complete_parameters
from evaluation.checkpoints.config_files import CONFIG_FILES
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import TORCH_NAMES
from evaluation.checkpoints.mapping import Source, Target
from evaluation.checkpoints.save import new_folder, save_shard
from evaluation.checkpoints.shards import Parameter, Shard
from evaluation.checkpoints.training import METADATA
from evaluation.checkpoints.weights import load_weights

_WHOLE = "whole"


def merged_parameters(merge: Checkpoint) -> Iterator[tuple[Parameter, Source, torch.Tensor]]:
    """Yield the parameters of a merge, a tensor at a time.

    Args:
        merge: A merge, opened as a checkpoint.

    Yields:
        The main member's parameter, where its rows go, and the mean of all members in its whole shape.

    Raises:
        IncompleteCheckpoint: A member is incomplete, or changes while it is read.
        CheckpointError: A member is unsound.
        UnsupportedCheckpoint: No class in transformers represents the model.
    """
    found = {one.path: complete_parameters(one) for one in merge.parts}
    for name, (parameter, source) in found[merge.path].items():
        parts = [(found[one.path][name][0], weight) for one, weight in merge.members]
        yield parameter, source, _mean(parts)
    check_unchanged(
        shard.header for own in found.values() for one, _ in own.values() for shard in one.shards
    )


def _mean(parts: list[tuple[Parameter, float]]) -> torch.Tensor:
    """Return the mean, in the dtype of all parts, or else in the one that it is computed in."""
    dtypes = {getattr(torch, TORCH_NAMES[part.dtype]) for part, _ in parts}
    exact = torch.float64 if torch.float64 in dtypes else torch.float32
    (first, total), *others = parts
    mean = _whole(first, exact)
    for part, weight in others:
        total += weight
        mean.add_(_whole(part, exact).sub_(mean).mul_(weight / total))
    return mean.to(dtypes.pop()) if len(dtypes) == 1 else mean


def _whole(parameter: Parameter, dtype: torch.dtype) -> torch.Tensor:
    """Read all shards of a parameter into one tensor."""
    whole = torch.empty(parameter.shape, dtype=dtype)
    source = Source(parameter.shape, (Target(_WHOLE, 0, parameter.shape[0]),))
    load_weights(((shard, source) for shard in parameter.shards), {_WHOLE: whole})
    return whole


def write_merge(merge: Checkpoint, target: Path) -> None:
    """Write a merge as a checkpoint, with the shards and configurations of its main member.

    Args:
        merge: A merge, opened as a checkpoint.
        target: Folder of the new checkpoint.

    Raises:
        CheckpointError: The folder is there already or cannot be written, or a member is unsound.
    """
    with new_folder(target) as folder:
        for parameter, _, mean in merged_parameters(merge):
            for shard in parameter.shards:
                path = folder / shard.path.relative_to(merge.path)
                save_shard(path, _part(mean, shard), shard.header.metadata)
        for name in (*CONFIG_FILES, METADATA):
            if (merge.path / name).is_file():
                shutil.copy(merge.path / name, folder / name)


def _part(whole: torch.Tensor, shard: Shard) -> torch.Tensor:
    part = torch.empty(shard.entry.shape, dtype=whole.dtype)
    for pair in shard.pairs:
        local, place = ([slice(*ends) for ends in side] for side in (pair.local, pair.whole))
        part[tuple(local)] = whole[tuple(place)]
    return part
