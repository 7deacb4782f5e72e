"""Read shards straight into a model's parameters by several threads.

A single reader leaves a parallel file system idle most of the time. Besides the model, memory holds a
shard for each reader. Files are read, not mapped: whatever happens to them later changes no weight.
"""

import itertools
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch
from safetensors import SafetensorError, safe_open

from evaluation.checkpoints.nanotron_classes.base import Target, TensorSource
from evaluation.checkpoints.shards import Shard, SlicesPair
from evaluation.errors import IncompleteCheckpoint

_THREADS = 4


def load_weights(
    shards: Iterable[tuple[Shard, TensorSource]], parameters: Mapping[str, torch.Tensor]
) -> None:
    """Read shards, each with the targets of its whole tensor's rows, into parameters on any devices."""
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="weights")
    try:
        for done in [pool.submit(_read, shard, source, parameters) for shard, source in shards]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _read(shard: Shard, source: TensorSource, parameters: Mapping[str, torch.Tensor]) -> None:
    try:
        with safe_open(shard.path, framework="pt", backend="pread") as file:
            data: torch.Tensor = file.get_tensor("data")
    except (OSError, SafetensorError) as error:
        raise IncompleteCheckpoint(
            f"{shard.path}: changed while it was read ({str(error)[:200]}); rerun when its writer has "
            "finished"
        ) from None
    for pair, target in itertools.product(shard.pairs, source.targets):
        _put(data, pair, target, parameters[target.name].detach())


def _put(data: torch.Tensor, pair: SlicesPair, target: Target, parameter: torch.Tensor) -> None:
    """Copy those rows of a shard's region that a parameter takes."""
    top, bottom = pair.whole[0]
    low, high = max(top, target.start), min(bottom, target.stop)
    if low >= high:
        return
    shift, back = pair.local[0][0] - top, target.offset - target.start
    local = (slice(low + shift, high + shift), *(slice(*edge) for edge in pair.local[1:]))
    values = data[local].to(parameter.device)
    if target.divisor != 1.0:
        values = values.double() / target.divisor
    region = parameter.transpose(1, 2) if target.transposed else parameter
    columns = [slice(*edge) for edge in pair.whole[1:]]
    head = target.interleaved_head
    if head is None:
        region[(slice(low + back, high + back), *columns)].copy_(values)
        return
    rows = torch.arange(low + back, high + back, device=region.device)
    inside = rows % head  # row 2j + p of a head of d rows becomes row j + p d/2
    rows += inside // 2 + inside % 2 * (head // 2) - inside
    region[(slice(None), *columns)].index_copy_(0, rows, values.to(parameter.dtype))
