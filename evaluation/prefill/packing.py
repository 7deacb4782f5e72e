"""Packing: documents into blocks of tokens, in bounded memory, with the bytes of text they stand for.

    documents      BOS a b c EOS | BOS d e EOS | BOS f …
    blocks of 4    BOS a b c   EOS BOS d e   EOS BOS f …
    starts         0             5             9

The last, incomplete block is dropped.
"""

import shutil
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import torch

from evaluation.prefill.caches import data_offset

Int32 = npt.NDArray[np.int32]

_FLUSH = 1 << 18
"""Tokens kept before whole blocks are written."""


@dataclass(frozen=True)
class Piece:
    """A document's tokens, or a part of them, and the UTF-8 bytes of text that each stands for."""

    ids: Int32
    sizes: Int32
    begins: bool = True
    ends: bool = True


@dataclass(frozen=True)
class Packed:
    """A packed slice: `block_bytes` (blocks,), flat `document_starts`, tokens that were left.

    `start_bytes` are those of each document's first token.
    """

    blocks: int
    block_bytes: torch.Tensor
    document_starts: torch.Tensor
    start_bytes: torch.Tensor
    dropped: int


def smallest_dtype(vocabulary: int) -> torch.dtype:
    """Return the smallest of uint8, uint16 and int32 that holds every id below `vocabulary`."""
    for dtype in (torch.uint8, torch.uint16, torch.int32):
        if vocabulary <= torch.iinfo(dtype).max + 1:
            return dtype
    raise ValueError(f"{vocabulary} token ids do not fit into 32 bits")


class Packer:
    """Takes pieces in order and writes whole blocks to a raw file until it has enough of them."""

    def __init__(
        self,
        file: IO[bytes],
        *,
        sequence_length: int,
        blocks: int,
        dtype: torch.dtype,
        before: list[int],
        after: list[int],
    ) -> None:
        self._file, self._length = file, sequence_length
        self.wanted = blocks * sequence_length
        self._dtype = np.dtype(str(dtype).removeprefix("torch."))
        self._before, self._after = (np.array(ids, dtype=np.int32) for ids in (before, after))
        self._ids: list[Int32] = []
        self._sizes: list[Int32] = []
        self._kept = 0
        self._block_bytes = array("q")
        self._starts = array("q")
        self._start_bytes = array("q")
        self.total = 0

    @property
    def full(self) -> bool:
        return self.total >= self.wanted

    def add(self, piece: Piece) -> None:
        if piece.begins:
            self._starts.append(self.total)
            self._keep(self._before, np.zeros_like(self._before))
        self._keep(piece.ids, piece.sizes)
        if piece.ends:
            self._keep(self._after, np.zeros_like(self._after))
        if self._kept >= max(_FLUSH, self._length):
            self._flush()

    def finish(self) -> Packed:
        self._flush()
        blocks = len(self._block_bytes)
        starts = np.frombuffer(self._starts, dtype=np.int64)
        return Packed(
            blocks=blocks,
            block_bytes=torch.tensor(self._block_bytes, dtype=torch.int64),
            document_starts=torch.from_numpy(starts[starts < blocks * self._length].copy()),
            start_bytes=torch.tensor(self._start_bytes, dtype=torch.int64),
            dropped=self.total - blocks * self._length,
        )

    def _keep(self, ids: Int32, sizes: Int32) -> None:
        self._ids.append(ids)
        self._sizes.append(sizes)
        self._kept += len(ids)
        self.total += len(ids)

    def _flush(self) -> None:
        """Write the whole blocks among what is kept."""
        if not self._ids:
            return
        ids, sizes = np.concatenate(self._ids), np.concatenate(self._sizes)
        left = self.wanted // self._length - len(self._block_bytes)
        whole = min(len(ids) // self._length, left)
        cut = whole * self._length
        self._file.write(ids[:cut].astype(self._dtype).tobytes())
        scored = sizes[:cut].reshape(whole, self._length)[:, 1:]  # a block's token 0 is not
        self._block_bytes.extend(scored.sum(axis=1, dtype=np.int64).tolist())
        begun = len(self._block_bytes) * self._length - cut
        starts = np.frombuffer(self._starts, dtype=np.int64)[len(self._start_bytes) :].copy()
        self._start_bytes.extend(sizes[starts[starts < begun + cut] - begun].tolist())
        self._ids, self._sizes = [ids[cut:]], [sizes[cut:]]
        self._kept = len(ids) - cut


def save_tokens(
    raw: IO[bytes], path: Path, *, blocks: int, sequence_length: int, dtype: torch.dtype
) -> None:
    """Write raw ids as a torch file of shape (blocks, sequence_length), a chunk at a time.

    torch lays the file out without looking at the tensor, which is never filled; the ids then go
    to where its data belongs. So memory stays bounded, whatever the size.
    """
    with torch.serialization.skip_data():
        torch.save(torch.empty((blocks, sequence_length), dtype=dtype), path)
    raw.seek(0)
    with open(path, "rb+") as file:
        file.seek(data_offset(path, blocks * sequence_length * dtype.itemsize))
        shutil.copyfileobj(raw, file, 1 << 22)
