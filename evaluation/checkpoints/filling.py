"""Shards read straight into a model's parameters: several reads in flight, a chunk each.

One read after the other leaves a parallel file system idle for most of the time, and also a page
cache, which a single thread copies from no faster than about a GB a second. Memory beside the model's
is a chunk for each reader. For a GPU chunks are pinned, so that it fetches them itself.
"""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from evaluation.checkpoints.ahead import AHEAD
from evaluation.checkpoints.mapping import Source, half_split_row
from evaluation.checkpoints.shards import Shard
from evaluation.checkpoints.spans import Kept, Span, spans
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import check_regular

READERS = {"cpu": 4, "cuda": 8}
"""Reads in flight; on CPU no more than it has cores."""

_CHUNK_BYTES = 4 << 20
_TASK_BYTES = 64 << 20
"""Read by one thread before another may go on with the file."""

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
}

Read = Callable[[memoryview, int], int]
"""Reads into a buffer from a place in a file; how many bytes it got."""


def fill(
    shards: Iterable[tuple[Shard, Source]],
    parameters: Mapping[str, torch.Tensor],
    kept: Mapping[str, Kept] | None = None,
    *,
    readers: int | None = None,
) -> None:
    """Reads shards into the parameters, all on one device, of the model that takes them.

    Of parameters that `kept` names a part is there, and no more of the files is read.

    Raises IncompleteCheckpoint for a file that has become shorter, CheckpointError for one that
    cannot be read.
    """
    filling = _Filling(parameters)
    tasks = [task for shard, source in shards for task in _tasks(shard, source, kept or {})]
    pool = ThreadPoolExecutor(readers or filling.readers, thread_name_prefix="weights")
    try:
        for done in [pool.submit(filling.read, task) for task in tasks]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _tasks(shard: Shard, source: Source, kept: Mapping[str, Kept]) -> Iterator[list[Span]]:
    """What is read of a shard, in chunks, as many together as are read by one thread."""
    task: list[Span] = []
    size = 0
    for chunk in itertools.chain.from_iterable(
        span.cut(_CHUNK_BYTES) for span in spans(shard, source, kept)
    ):
        if task and size + chunk.bytes > _TASK_BYTES:
            yield task
            task, size = [], 0
        task.append(chunk)
        size += chunk.bytes
    if task:
        yield task


class _Filling:
    """The parameters that are filled; each thread has a buffer and, for a GPU, a stream of its own."""

    def __init__(self, parameters: Mapping[str, torch.Tensor]) -> None:
        self._parameters = parameters
        self._device = next(iter(parameters.values())).device
        self._own = threading.local()

    @property
    def on_gpu(self) -> bool:
        return self._device.type == "cuda"

    @property
    def readers(self) -> int:
        if self.on_gpu:
            return READERS["cuda"]
        return min(READERS["cpu"], len(os.sched_getaffinity(0)))

    def read(self, chunks: list[Span]) -> None:
        """Reads chunks of one shard and puts them where they belong."""
        shard = chunks[0].shard
        with _opened(shard) as read, self._stream() as stream:
            for chunk in chunks:
                _read_into(self._buffer(chunk.bytes).numpy().data, chunk, read)
                self._put(_values(self._buffer(chunk.bytes), chunk), chunk)
                if stream is not None:
                    stream.synchronize()  # before the buffer is used again

    @contextlib.contextmanager
    def _stream(self) -> Iterator[torch.cuda.Stream | None]:
        if not self.on_gpu:
            yield None
            return
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._own.stream):
            yield self._own.stream

    def _buffer(self, size: int) -> torch.Tensor:
        """This thread's own, uint8 (size,): fresh memory for each chunk costs as much as reading it."""
        buffer: torch.Tensor | None = getattr(self._own, "buffer", None)
        if buffer is None or len(buffer) < size:
            buffer = torch.empty(max(size, _CHUNK_BYTES), dtype=torch.uint8, pin_memory=self.on_gpu)
            self._own.buffer = buffer
        return buffer[:size]

    def _put(self, values: torch.Tensor, chunk: Span) -> None:
        """Copies values, in the shape of the chunk's place, to the parameter that takes them."""
        target = chunk.target
        parameter = self._parameters[target.name].detach()
        region = parameter.transpose(1, 2) if target.transposed else parameter
        values = values.to(parameter.device, non_blocking=True)
        if target.divisor != 1.0:
            values = values.double() / target.divisor
        place = [slice(*pair) for pair in chunk.place]
        at = place[chunk.dimension]
        place[chunk.dimension] = slice(at.start + chunk.shift, at.stop + chunk.shift)
        if target.interleaved_head is None:
            region[tuple(place)].copy_(values)  # converts as it copies
            return
        shift = chunk.shift if chunk.dimension == 0 else 0
        order = [
            half_split_row(row, target.interleaved_head) + shift for row in range(*chunk.place[0])
        ]
        index = torch.tensor(order, device=region.device)
        region[(slice(None), *place[1:])].index_copy_(0, index, values.to(parameter.dtype))


@contextlib.contextmanager
def _opened(shard: Shard) -> Iterator[Read]:
    content = AHEAD.held(shard.header)
    if content is not None:
        yield partial(_copied, content)
        return
    try:
        check_regular(shard.path)
        with open(shard.path, "rb", buffering=0) as file:
            yield lambda buffer, place: os.preadv(file.fileno(), [buffer], place)
    except OSError as error:
        raise CheckpointError(
            f"{shard.path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None


def _copied(content: memoryview, buffer: memoryview, place: int) -> int:
    found = content[place : place + len(buffer)]
    torch.frombuffer(buffer, dtype=torch.uint8)[: len(found)].copy_(
        torch.frombuffer(found, dtype=torch.uint8)  # without Python's lock
    )
    return len(found)


def _read_into(buffer: memoryview, chunk: Span, read: Read) -> None:
    """Reads a chunk's rows, or of each of them the part that is asked for, one after the other."""
    entry = chunk.shard.entry
    first, stop = chunk.local[0]
    if not chunk.runs:
        _read_all(buffer, entry.start + first * chunk.row_bytes, chunk, read)
        return
    run = chunk.row_bytes
    row_bytes = (entry.stop - entry.start) // entry.shape[0]
    begin = entry.start + chunk.local[1][0] * (row_bytes // entry.shape[1])
    for row in range(first, stop):
        done = (row - first) * run
        _read_all(buffer[done : done + run], begin + row * row_bytes, chunk, read)


def _read_all(buffer: memoryview, place: int, chunk: Span, read: Read) -> None:
    done = 0
    while done < len(buffer):
        count = read(buffer[done:], place + done)
        if not count:
            raise IncompleteCheckpoint(
                f"{chunk.shard.path}: became shorter while it was read; rerun"
            )
        done += count


def _values(buffer: torch.Tensor, chunk: Span) -> torch.Tensor:
    """What was read, cut to what was asked for."""
    dtype = _DTYPES[chunk.shard.entry.dtype]
    rows = buffer.view(dtype).view(chunk.read_shape)
    skipped = 2 if chunk.runs else 1
    return rows[(slice(None),) * skipped + tuple(slice(*pair) for pair in chunk.local[skipped:])]
