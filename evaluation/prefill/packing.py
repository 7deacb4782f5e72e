"""Pack documents into blocks of tokens, in bounded memory, and count each block's bytes of text.

    documents      BOS a b c EOS | BOS d e EOS | BOS f …
    blocks of 4    BOS a b c   EOS BOS d e   EOS BOS f …
    starts         0             5             9

The last, incomplete block is dropped.

A character that several tokens share counts for the first of them, and text that no token covers
counts for the next token. So the bytes of a document's tokens always add up to the document's. A slow
tokenizer gives no offsets: the document's bytes are then divided in proportion to the lengths of the
pieces, which is exact for the document and approximate for a block that cuts it.
"""

import shutil
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import torch

from evaluation.prefill.caches import data_offset
from evaluation.tokenizers.base import EncodedText, LoadedTokenizer
from evaluation.tokenizers.pieces import PieceTokenizer

Int32 = npt.NDArray[np.int32]

_BATCH_CHARACTERS = 1 << 19
_BATCH_DOCUMENTS = 1024

LONGEST_PIECE = 1 << 18
"""Characters tokenized at once; a longer document is cut, before a line break if possible."""

_FLUSH = 1 << 18
"""Tokens kept before whole blocks are written."""

Part = tuple[str, bool, bool]
"""Text, whether a document begins with it, and whether it ends with it."""


@dataclass(frozen=True)
class DocumentPart:
    """A document's tokens, or a part of them, and the UTF-8 bytes of text that each stands for."""

    ids: Int32
    sizes: Int32
    begins: bool = True
    ends: bool = True


def encode_documents(tokenizer: LoadedTokenizer, texts: Iterable[str]) -> Iterator[DocumentPart]:
    """Tokenize texts in order, without special tokens, even where a text spells one out.

    A long document makes several pieces.
    """
    lengths = None
    if isinstance(tokenizer, PieceTokenizer):
        lengths = np.array(tokenizer.byte_lengths(), dtype=np.int32)
    for batch in _batches(part for text in texts for part in _parts(text)):
        yield from _encode_batch(tokenizer, batch, lengths)


def _parts(text: str) -> Iterator[Part]:
    start = 0
    while start < len(text):
        end = min(start + LONGEST_PIECE, len(text))
        if end < len(text):
            line = text.rfind("\n", start + 1, end)
            end = line if line > 0 else end
        yield text[start:end], start == 0, end == len(text)
        start = end


def _batches(parts: Iterable[Part]) -> Iterator[list[Part]]:
    batch: list[Part] = []
    characters = 0
    for part in parts:
        batch.append(part)
        characters += len(part[0])
        if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _encode_batch(
    tokenizer: LoadedTokenizer, batch: list[Part], lengths: Int32 | None
) -> list[DocumentPart]:
    """Return tokens and bytes of each part; `lengths` are bytes of tokens by id, None with offsets."""
    encoded = tokenizer.encode_documents([text for text, _, _ in batch])
    return [
        DocumentPart(
            np.array(encoded.ids, dtype=np.int32), _sizes(text, encoded, lengths), begins, ends
        )
        for (text, begins, ends), encoded in zip(batch, encoded, strict=True)
    ]


def _sizes(text: str, encoded: EncodedText, lengths: Int32 | None) -> Int32:
    if encoded.offsets is not None:
        return sizes_from_offsets(text, encoded.offsets)
    assert lengths is not None
    return _sizes_in_proportion(text, lengths[encoded.ids])


def sizes_from_offsets(text: str, offsets: list[tuple[int, int]]) -> Int32:
    """Return each token's bytes of UTF-8; their sum is the text's size.

    Args:
        offsets: First character of each token, and the one after its last.
    """
    if not offsets:
        return np.zeros(0, dtype=np.int32)
    ends = np.fromiter((end for _, end in offsets), dtype=np.int64, count=len(offsets))
    ends = np.maximum.accumulate(ends)
    ends[-1] = len(text)
    if not text.isascii():
        ends = _bytes_before(text)[ends]
    return _differences(ends)


def _differences(ends: npt.NDArray[np.int64]) -> Int32:
    return np.diff(ends, prepend=0).astype(np.int32)


def _bytes_before(text: str) -> npt.NDArray[np.int64]:
    """Return the UTF-8 bytes before each character of a text, and in all of it: (characters + 1,)."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def _sizes_in_proportion(text: str, lengths: Int32) -> Int32:
    """Divide the bytes of a text among tokens by the lengths of their pieces."""
    if not len(lengths):
        return np.zeros(0, dtype=np.int32)
    before = np.cumsum(lengths, dtype=np.int64)
    size = len(text.encode())
    ends = np.rint(before * (size / max(int(before[-1]), 1))).astype(np.int64)
    ends[-1] = size
    return _differences(ends)


@dataclass(frozen=True)
class Packed:
    """A packed slice: `block_bytes` (blocks,), flat `document_starts`, bytes of the tokens there, rest."""

    blocks: int
    block_bytes: torch.Tensor
    document_starts: torch.Tensor
    start_bytes: torch.Tensor
    dropped: int


def smallest_dtype(vocabulary: int) -> torch.dtype:
    """Return the smallest of uint8, uint16 and int32 that holds every id."""
    types = (torch.uint8, torch.uint16, torch.int32)
    return next(dtype for dtype in types if vocabulary <= torch.iinfo(dtype).max + 1)


class Packer:
    """Takes pieces in order and writes whole blocks to a raw file until it has enough of them.

    Args:
        dtype: Dtype of the ids in the file, as `smallest_dtype` gives it.
        before: Ids that are put before each document.
        after: Ids that are put after each document.
    """

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
        self._ids: list[Int32] = [np.zeros(0, dtype=np.int32)]
        self._sizes: list[Int32] = [np.zeros(0, dtype=np.int32)]
        self._kept = 0
        self._block_bytes = array("q")
        self._starts = array("q")
        self._start_bytes = array("q")
        self.total = 0

    @property
    def full(self) -> bool:
        """Whether there are enough tokens for all blocks."""
        return self.total >= self.wanted

    def add(self, piece: DocumentPart) -> None:
        """Take the next piece."""
        if piece.begins:
            self._starts.append(self.total)
            self._keep(self._before, np.zeros_like(self._before))
        self._keep(piece.ids, piece.sizes)
        if piece.ends:
            self._keep(self._after, np.zeros_like(self._after))
        if self._kept >= max(_FLUSH, self._length):
            self._flush()

    def finish(self) -> Packed:
        """Write the remaining whole blocks; return how many there are, and where documents begin."""
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
        """Write the whole blocks among the kept tokens."""
        ids, sizes = np.concatenate(self._ids), np.concatenate(self._sizes)
        left = self.wanted // self._length - len(self._block_bytes)
        whole = min(len(ids) // self._length, left)
        cut = whole * self._length
        self._file.write(ids[:cut].astype(self._dtype).tobytes())
        scored = sizes[:cut].reshape(whole, self._length)[:, 1:]  # without a block's token 0
        self._block_bytes.extend(scored.sum(axis=1, dtype=np.int64).tolist())
        begun = len(self._block_bytes) * self._length - cut
        starts = np.frombuffer(self._starts, dtype=np.int64)[len(self._start_bytes) :].copy()
        self._start_bytes.extend(sizes[starts[starts < begun + cut] - begun].tolist())
        self._ids, self._sizes = [ids[cut:]], [sizes[cut:]]
        self._kept = len(ids) - cut


def save_tokens(
    raw: IO[bytes], path: Path, *, blocks: int, sequence_length: int, dtype: torch.dtype
) -> None:
    """Write the ids of a `Packer` as a torch file: torch writes an empty one, which is filled in."""
    with torch.serialization.skip_data():
        torch.save(torch.empty((blocks, sequence_length), dtype=dtype), path)
    raw.seek(0)
    with open(path, "rb+") as file:
        file.seek(data_offset(path, blocks * sequence_length * dtype.itemsize))
        shutil.copyfileobj(raw, file, 1 << 22)
