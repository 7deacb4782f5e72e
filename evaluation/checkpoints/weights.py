"""Read shards straight into a model's parameters by several threads.

A single reader leaves a parallel file system idle most of the time, and copies no more than about a
GB a second from the page cache. Besides the model, memory holds one chunk for each reader. For a GPU,
chunks are in pinned memory, which it can read by itself.
"""

import contextlib
import itertools
import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from evaluation.allowance import usable_cores
from evaluation.checkpoints.config_files import open_file
from evaluation.checkpoints.headers import TORCH_NAMES
from evaluation.checkpoints.mapping import Target, TensorSource
from evaluation.checkpoints.shards import Shard, Slices
from evaluation.errors import IncompleteCheckpoint

READERS = {"cpu": 4, "cuda": 8}
"""Number of reading threads for each kind of device."""

_CHUNK_BYTES = 4 << 20
_TASK_BYTES = 64 << 20
"""Consecutive bytes of a file that one thread reads as one task."""


def load_weights(
    shards: Iterable[tuple[Shard, TensorSource]],
    parameters: Mapping[str, torch.Tensor],
    *,
    readers: int | None = None,
) -> None:
    """Read shards into the parameters of a model, whatever devices these are on.

    Args:
        shards: Each shard with the targets of its whole tensor's rows.
        readers: Number of reading threads; None: as `READERS` states.

    Raises:
        IncompleteCheckpoint: A file became shorter.
        CheckpointError: A file cannot be read.
    """
    reader = _WeightReader(parameters)
    tasks = [task for shard, source in shards for task in _tasks(shard, source)]
    pool = ThreadPoolExecutor(readers or reader.threads, thread_name_prefix="weights")
    try:
        for done in [pool.submit(reader.read, task) for task in tasks]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Chunk:
    """Rows that are read at once: the region `local` of a shard is the region `place` of the target.

    Both have the shard's order of dimensions.
    """

    shard: Shard
    local: Slices
    target: Target
    place: Slices

    @property
    def bytes(self) -> int:
        """Size of the whole rows, even if the region has only some columns of them."""
        first, stop = self.local[0]
        return (stop - first) * _row_bytes(self.shard)


def _tasks(shard: Shard, source: TensorSource) -> Iterator[list[_Chunk]]:
    """Yield the chunks of a shard, in lists that one thread reads as one task."""
    task: list[_Chunk] = []
    size = 0
    for chunk in _chunks(shard, source):
        if task and size + chunk.bytes > _TASK_BYTES:
            yield task
            task, size = [], 0
        task.append(chunk)
        size += chunk.bytes
    if task:
        yield task


def _chunks(shard: Shard, source: TensorSource) -> Iterator[_Chunk]:
    rows = max(1, _CHUNK_BYTES // _row_bytes(shard))
    for pair, target in itertools.product(shard.pairs, source.targets):
        (top, bottom), *others = pair.whole
        shift = pair.local[0][0] - top
        low, high = max(top, target.start), min(bottom, target.stop)
        for row in range(low, high, rows):
            end = min(high, row + rows)
            local = ((row + shift, end + shift), *pair.local[1:])
            shift_back = target.offset - target.start
            yield _Chunk(shard, local, target, ((row + shift_back, end + shift_back), *others))


def _dtype(shard: Shard) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, TORCH_NAMES[shard.entry.dtype])
    return dtype


def _row_bytes(shard: Shard) -> int:
    return math.prod(shard.entry.shape[1:]) * _dtype(shard).itemsize


class _WeightReader:
    """Fills parameters; each thread has its own buffer and, for a GPU, its own stream."""

    def __init__(self, parameters: Mapping[str, torch.Tensor]) -> None:
        self._parameters = {name: parameter.detach() for name, parameter in parameters.items()}
        self._thread = threading.local()
        self.on_gpu = any(parameter.is_cuda for parameter in parameters.values())

    @property
    def threads(self) -> int:
        """Number of reading threads; on the CPU at most its number of cores."""
        if self.on_gpu:
            return READERS["cuda"]
        return min(READERS["cpu"], usable_cores())

    def read(self, chunks: list[_Chunk]) -> None:
        """Read chunks and copy them into their parameters."""
        path = chunks[0].shard.path
        with open_file(path) as file:
            for chunk in chunks:
                buffer = self._buffer(chunk.bytes)
                _read_into(buffer.numpy().data, chunk, file.fileno())
                parameter = self._parameters[chunk.target.name]
                with self._stream_on(parameter.device):  # before the buffer is used again
                    _put(_values(buffer, chunk), chunk.target, chunk.place, parameter)

    @contextlib.contextmanager
    def _stream_on(self, device: torch.device) -> Iterator[None]:
        """Run a block in this thread's stream of a GPU, and wait until the stream is done."""
        if device.type != "cuda":
            yield
            return
        streams: dict[torch.device, torch.cuda.Stream] = self._thread.__dict__.setdefault(
            "streams", {}
        )
        if device not in streams:
            streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(streams[device]):
            yield
            streams[device].synchronize()

    def _buffer(self, size: int) -> torch.Tensor:
        """Return this thread's buffer, uint8 (size,): allocating one a chunk would double the time."""
        buffer: torch.Tensor | None = getattr(self._thread, "buffer", None)
        if buffer is None or len(buffer) < size:
            buffer = torch.empty(max(size, _CHUNK_BYTES), dtype=torch.uint8, pin_memory=self.on_gpu)
            self._thread.buffer = buffer
        return buffer[:size]


def _put(values: torch.Tensor, target: Target, place: Slices, parameter: torch.Tensor) -> None:
    """Copy values, in the shape of the region `place`, into the parameter that takes them."""
    region = parameter.transpose(1, 2) if target.transposed else parameter
    values = values.to(parameter.device, non_blocking=True)
    if target.divisor != 1.0:
        values = values.double() / target.divisor
    rows, *columns = (slice(*pair) for pair in place)
    if target.interleaved_head is None:
        region[(rows, *columns)].copy_(values)  # converts as it copies
        return
    order = [_half_split_row(row, target.interleaved_head) for row in range(*place[0])]
    index = torch.tensor(order, device=region.device)
    region[(slice(None), *columns)].index_copy_(0, index, values.to(parameter.dtype))


def _half_split_row(row: int, head: int) -> int:
    """Return the new place of a row of adjacent pairs: row 2j + p of a head of d rows is row j + p d/2."""
    whole, inside = divmod(row, head)
    return whole * head + inside // 2 + inside % 2 * (head // 2)


def _read_into(buffer: memoryview, chunk: _Chunk, file: int) -> None:
    shard = chunk.shard
    position, done = shard.entry.start + chunk.local[0][0] * _row_bytes(shard), 0
    while done < len(buffer):
        count = os.preadv(file, [buffer[done:]], position + done)
        if not count:
            raise IncompleteCheckpoint(f"{shard.path}: became shorter while it was read; rerun")
        done += count


def _values(buffer: torch.Tensor, chunk: _Chunk) -> torch.Tensor:
    """Return the values in a buffer, cut to the chunk's columns."""
    rows = buffer.view(_dtype(chunk.shard)).view(-1, *chunk.shard.entry.shape[1:])
    return rows[(slice(None), *(slice(*pair) for pair in chunk.local[1:]))]
