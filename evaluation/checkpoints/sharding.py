"""Writes whole tensors as Nanotron's shards, with the metadata that says how they join."""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from evaluation.checkpoints.mapping import Source
from evaluation.errors import CheckpointError

VERSION = "1.5"
"""Of the checkpoint format."""

_BY_ROWS = ("token_embedding", "lm_head", "qkv_proj", "gate_up_proj")
_BY_COLUMNS = ("o_proj", "down_proj")
_ALL = "None,None,None"


def write_parameters(
    folder: Path,
    expected: dict[str, Source],
    tensor: Callable[[str], torch.Tensor],
    *,
    tp: int,
    pp_rank: Callable[[str], tuple[int, int]] = lambda _: (0, 1),
) -> None:
    """Writes every expected parameter below `folder/model`, one at a time.

    `tensor` gives a whole parameter by name, `pp_rank` its pipeline rank and their number.
    Raises CheckpointError if the disk is full or cannot be written.
    """
    for name, source in expected.items():
        whole = tensor(name)
        *parents, last = name.split(".")
        place = folder.joinpath("model", *parents)
        dimension = split_dimension(name)
        if dimension is None:
            _save(place / f"model_{last}.safetensors", whole, {})
            continue
        for rank in range(tp):
            shard, pairs = _shard(whole, dimension, source, rank, tp)
            p, stages = pp_rank(name)
            label = f"pp-rank-{p}-of-{stages}_tp-rank-{rank}-of-{tp}"
            metadata = {
                "version": VERSION,
                "unsharded_shape": str(tuple(whole.shape)),
                "local_global_slices_pairs": pairs,
            }
            _save(place / f"model_{last}_{label}.safetensors", shard, metadata)


def split_dimension(name: str) -> int | None:
    """The dimension along which tensor parallelism splits a parameter; None if it does not."""
    layers = name.split(".")
    if any(layer in layers for layer in _BY_ROWS):
        return 0
    return 1 if any(layer in layers for layer in _BY_COLUMNS) else None


def _shard(
    whole: torch.Tensor, dimension: int, source: Source, rank: int, tp: int
) -> tuple[torch.Tensor, str]:
    """A rank's shard and its slice pairs: a part of each of the tensors that are joined in one."""
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
            f"{_sides(here, dimension, whole.ndim)}"
            f"#{_sides(f'{first},{first + size},None', dimension, whole.ndim)}"
        )
        local += size
    return torch.cat(taken, dimension), ";".join(pairs)


def _sides(split: str, dimension: int, dimensions: int) -> str:
    return "|".join(split if index == dimension else _ALL for index in range(dimensions))


def _save(path: Path, tensor: torch.Tensor, metadata: dict[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"data": tensor.contiguous()}, path, metadata)
        # safetensors makes files that only their owner reads; the folder follows the umask.
        path.chmod(path.parent.stat().st_mode & 0o666)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error}); free disk space or choose another target"
        ) from None
