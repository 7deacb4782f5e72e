"""Documents to tokens: in batches, on all cores, with the bytes of text each token stands for.

A character that several tokens share counts for the first of them, and what no token covers for
the next one, so the bytes of a document's tokens always add up to the document's. A slow
tokenizer does not show where its tokens lie: the document's bytes are then divided in proportion
to the lengths of the pieces, exact for the document and close for a block that cuts it.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.errors import SourceError
from evaluation.prefill.files import check_unicode
from evaluation.prefill.packing import Int32, Piece
from evaluation.prefill.tokenizers import AnyTokenizer, load_tokenizer
from evaluation.wording import kind_of

_BATCH_CHARACTERS = 1 << 19
_BATCH_DOCUMENTS = 1024

LONGEST_PIECE = 1 << 18
"""Characters tokenized at once; a longer document is cut, before a line break where it can be."""

Part = tuple[str, bool, bool]
"""Text, whether a document begins with it, and whether it ends with it."""

Batch = list[Part]


def encode_documents(
    tokenizer: AnyTokenizer, texts: Iterable[str], folder: Path, workers: int | None = None
) -> Iterator[Piece]:
    """Tokenize texts in order, without special tokens, even where a text spells one out.

    A fast tokenizer uses all cores by itself; a slow one, saved in `folder`, runs in as many
    processes as there are cores, or in this one if that is one.
    """
    batches = _batches(part for text in texts for part in _parts(text))
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    if tokenizer.is_fast or workers < 2:
        lengths = None if tokenizer.is_fast else piece_lengths(tokenizer)
        encoded = (encode_batch(tokenizer, batch, lengths) for batch in batches)
        yield from chain.from_iterable(encoded)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _open_worker, (folder,)) as pool:
        try:
            yield from chain.from_iterable(_in_order(pool, _encode_in_worker, batches, 2 * workers))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _parts(text: str) -> Iterator[Part]:
    if len(text) <= LONGEST_PIECE:
        yield text, True, True
        return
    start = 0
    while start < len(text):
        end = min(start + LONGEST_PIECE, len(text))
        if end < len(text):
            line = text.rfind("\n", start + 1, end)
            end = line if line > 0 else end
        yield text[start:end], start == 0, end == len(text)
        start = end


def _batches(parts: Iterable[Part]) -> Iterator[Batch]:
    batch: Batch = []
    characters = 0
    for part in parts:
        batch.append(part)
        characters += len(part[0])
        if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def encode_batch(tokenizer: AnyTokenizer, batch: Batch, lengths: Int32 | None) -> list[Piece]:
    """Return tokens and bytes of each part; `lengths` are `piece_lengths` where there are no offsets."""
    encoded = tokenizer(
        [text for text, _, _ in batch],
        add_special_tokens=False,
        split_special_tokens=True,
        return_offsets_mapping=lengths is None,
        return_attention_mask=False,
    )
    pieces = []
    for number, (text, begins, ends) in enumerate(batch):
        ids = np.array(encoded["input_ids"][number], dtype=np.int32)
        if lengths is None:
            sizes = sizes_from_offsets(text, encoded["offset_mapping"][number])
        else:
            sizes = sizes_in_proportion(text, lengths[ids])
        pieces.append(Piece(ids, sizes, begins, ends))
    return pieces


def sizes_from_offsets(text: str, offsets: list[tuple[int, int]]) -> Int32:
    """Return the bytes of text per token from the characters that it spans."""
    if not offsets:
        return np.zeros(0, dtype=np.int32)
    ends = np.fromiter((end for _, end in offsets), dtype=np.int64, count=len(offsets))
    ends = np.maximum.accumulate(ends)
    ends[-1] = len(text)
    if not text.isascii():
        ends = _bytes_before(text)[ends]
    sizes: Int32 = np.diff(ends, prepend=0).astype(np.int32)
    return sizes


def _bytes_before(text: str) -> npt.NDArray[np.int64]:
    """Return the UTF-8 bytes before each character of a text, and in all of it: (characters + 1,)."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def sizes_in_proportion(text: str, lengths: Int32) -> Int32:
    """Divide the bytes of a text among tokens by the lengths of their pieces."""
    if not len(lengths):
        return np.zeros(0, dtype=np.int32)
    before = np.cumsum(lengths, dtype=np.int64)
    size = len(text.encode())
    ends = np.rint(before * (size / max(int(before[-1]), 1))).astype(np.int64)
    ends[-1] = size
    sizes: Int32 = np.diff(ends, prepend=0).astype(np.int32)
    return sizes


def piece_lengths(tokenizer: AnyTokenizer) -> Int32:
    """Return the UTF-8 bytes of each piece of a slow tokenizer, by id: `▁` is a space, `<0x0A>` one byte."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    lengths = np.zeros(max(vocabulary.values()) + 1, dtype=np.int32)
    for piece, number in vocabulary.items():
        is_byte = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
        lengths[number] = 1 if is_byte else len(piece.replace("▁", " ").encode())
    return lengths


_worker: tuple[AnyTokenizer, Int32] | None = None


def _open_worker(folder: Path) -> None:
    global _worker
    tokenizer = load_tokenizer(folder, use_fast=False)
    _worker = tokenizer, piece_lengths(tokenizer)


def _encode_in_worker(batch: Batch) -> list[Piece]:
    if _worker is None:
        raise RuntimeError("this process was not opened as a worker")
    tokenizer, lengths = _worker
    return encode_batch(tokenizer, batch, lengths)


def _in_order(
    pool: ProcessPoolExecutor,
    function: Callable[[Batch], list[Piece]],
    batches: Iterable[Batch],
    ahead: int,
) -> Iterator[list[Piece]]:
    """Map like `pool.map`, but read only so many batches ahead."""
    running: deque[Future[list[Piece]]] = deque()
    for batch in batches:
        running.append(pool.submit(function, batch))
        if len(running) >= ahead:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def check_text(value: Any) -> str:
    """Return a field's value as text; raises SourceError for what is no text or not valid Unicode."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise SourceError(
            f"the text is {kind_of(value)}, not text; set `text` to a template that makes it one"
        )
    check_unicode(value)
    return value
