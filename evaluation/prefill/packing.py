"""Pack documents into blocks of tokens, and count each block's bytes of text.

    documents      BOS a b c EOS | BOS d e EOS | BOS f …
    blocks of 4    BOS a b c   EOS BOS d e   EOS BOS f …
    starts         0             5             9

The last, incomplete block is dropped.

A character that several tokens share counts for the first of them, and text that no token covers
counts for the next token. So the bytes of a document's tokens always add up to the document's. A
SentencePiece model gives no offsets: the document's bytes are then divided in proportion to the lengths
of the pieces, which is exact for the document and approximate for a block that cuts it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from evaluation.tokenizers.base import EncodedText, LoadedTokenizer
from evaluation.tokenizers.pieces import PieceTokenizer

Int32 = npt.NDArray[np.int32]

_BATCH_CHARACTERS = 1 << 19
"""Characters of the documents that are tokenized at once."""


@dataclass(frozen=True)
class EncodedDocument:
    """A document's tokens, and the UTF-8 bytes of text that each stands for."""

    ids: Int32
    sizes: Int32


def encode_documents(tokenizer: LoadedTokenizer, texts: Iterable[str]) -> Iterator[EncodedDocument]:
    """Tokenize texts in order, without special tokens, even where a text spells one out."""
    lengths = None
    if isinstance(tokenizer, PieceTokenizer):
        lengths = np.array(tokenizer.byte_lengths(), dtype=np.int64)
    for batch in _batches(texts):
        for text, part in zip(batch, tokenizer.encode_documents(batch), strict=True):
            yield EncodedDocument(np.array(part.ids, dtype=np.int32), _sizes(text, part, lengths))


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch, characters = list[str](), 0
    for text in texts:
        batch.append(text)
        characters += len(text) + 512  # so that short ones are not too many
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _sizes(text: str, encoded: EncodedText, lengths: npt.NDArray[np.int64] | None) -> Int32:
    if encoded.offsets is not None:
        return sizes_from_offsets(text, encoded.offsets)
    assert lengths is not None
    before, size = np.cumsum(lengths[encoded.ids]), len(text.encode())
    return _differences(np.rint(before * (size / max(before[-1:].sum(), 1))).astype(np.int64), size)


def sizes_from_offsets(text: str, offsets: list[tuple[int, int]]) -> Int32:
    """Return each token's bytes of UTF-8; their sum is the text's size.

    Args:
        offsets: First character of each token, and the one after its last.
    """
    ends = np.maximum.accumulate(np.array([end for _, end in offsets], dtype=np.int64))
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    bytes_before = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    return _differences(bytes_before[ends], bytes_before[-1])


def _differences(ends: npt.NDArray[np.int64], size: int) -> Int32:
    """Return the sizes of tokens by the byte after each; the last one ends with the text."""
    ends[-1:] = size
    return np.diff(ends, prepend=0).astype(np.int32)


@dataclass(frozen=True)
class Packed:
    """A packed slice: tokens (blocks, length), `block_bytes` (blocks,), flat `document_starts`.

    `start_bytes` are those of the tokens where documents start, `dropped` the tokens behind the last block.
    """

    tokens: torch.Tensor
    block_bytes: torch.Tensor
    document_starts: torch.Tensor
    start_bytes: torch.Tensor
    dropped: int


def smallest_dtype(vocabulary: int) -> torch.dtype:
    """Return the smallest of uint8, uint16 and int32 that holds every id."""
    types = (torch.uint8, torch.uint16, torch.int32)
    return next(dtype for dtype in types if vocabulary <= torch.iinfo(dtype).max + 1)


def pack(
    documents: Iterable[EncodedDocument],
    *,
    length: int,
    blocks: int,
    around: tuple[Sequence[int], Sequence[int]],
) -> Packed:
    """Join documents and cut them into blocks of `length` tokens, until there are enough.

    Args:
        blocks: The most blocks.
        around: Ids that are put before each document, and after it.
    """
    before, after = (_without_text(ids) for ids in around)
    kept, starts, total = [_without_text([])], list[int](), 0
    for document in documents:
        starts.append(total)
        kept += (before, document, after)
        total += len(before.ids) + len(document.ids) + len(after.ids)
        if total >= length * blocks:
            break
    count = min(total // length, blocks)
    ids = np.concatenate([part.ids for part in kept])[: count * length]
    sizes = np.concatenate([part.sizes for part in kept])[: count * length].astype(np.int64)
    inside = np.array([start for start in starts if start < count * length], dtype=np.int64)
    scored = sizes.reshape(count, length)[:, 1:]  # without a block's token 0
    return Packed(
        tokens=torch.from_numpy(ids).reshape(count, length),
        block_bytes=torch.from_numpy(scored.sum(axis=1)),
        document_starts=torch.from_numpy(inside),
        start_bytes=torch.from_numpy(sizes[inside]),
        dropped=total - count * length,
    )


def _without_text(ids: Sequence[int]) -> EncodedDocument:
    return EncodedDocument(np.array(ids, dtype=np.int32), np.zeros(len(ids), dtype=np.int32))
