"""Tier2 slices: documents of a source, packed into blocks of tokens, with each block's bytes of text.

    documents      BOS a b c EOS | BOS d e EOS | BOS f …
    blocks of 4    BOS a b c   EOS BOS d e   EOS BOS f …
    starts         0             5             9

The last, incomplete block is dropped.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluation.errors import ConfigError, SourceError, kind_of
from evaluation.prefill.caches import INDEX, TOKENS
from evaluation.prefill.entries import counted
from evaluation.prefill.sources import ResolvedSplit, describe, locate_item, state_of
from evaluation.prefill.templates import (
    at_row,
    check_unicode,
    compile_expression,
    compile_template,
    values_of,
)
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.sources import Slice
from evaluation.tokenizers.base import EncodedDocument, LoadedTokenizer
from evaluation.tokenizers.encoding import bos_ids

log = logging.getLogger(__name__)

_BATCH = 16
"""Documents that are tokenized at once; few, as they may be long."""


def prefill_slice(plan: StagePlan, name: str, _: Any, building: Path) -> dict[str, Any]:
    """Write a slice's files; return its part of meta.json."""
    item, length = plan.suite.slices[name], plan.sequence_length
    if item.tokens < length:
        raise ConfigError(
            f"slices.{name}.tokens: {item.tokens} is less than one block of {length} tokens; ask for more"
        )
    (split,), _ = locate_item(item, plan.config)
    state = state_of([split])
    tokenizer, count = stage_tokenizer(plan), Counter[str]()
    texts = _documents(split, item, name, count)
    around = (bos_ids(tokenizer, plan.tokenizer.prepend_bos), [_separator_id(tokenizer)])
    batches, asked = iter(lambda: list(islice(texts, _BATCH)), []), item.tokens // length
    documents = chain.from_iterable(map(tokenizer.encode_documents, batches))
    tokens, index, dropped = pack(documents, length=length, blocks=asked, around=around)
    blocks, dtype = len(tokens), smallest_dtype(tokenizer.rows)
    _check_filled(f"slice {name}: {split}", blocks, asked, length, dropped)
    torch.save(tokens.to(dtype), building / TOKENS)
    torch.save(index, building / INDEX)
    return {
        "protocol": protocol.PREFILL_SLICE,
        "slice": item.model_dump(mode="json"),
        "documents": len(index["document_starts"]),
        "documents_skipped": count["skipped"],
        "documents_empty": count["empty"],
        "blocks": blocks,
        "tokens": blocks * length,
        "bytes": int(index["block_bytes"].sum()),
        "asked": asked * length,
        "used": blocks * length,
        "items": counted(asked, blocks, **{"the data ended": asked - blocks}),
        "sequence_length": length,
        "vocab_size_needed": tokenizer.rows,
        "dtype": str(dtype).removeprefix("torch."),
        "source": describe([split], state),
    }


def _check_filled(place: str, blocks: int, asked: int, length: int, dropped: int) -> None:
    if blocks == 0:
        raise SourceError(
            f"{place} has {dropped} tokens, less than one block of {length}; lower `skip_documents`, or "
            "choose a larger source"
        )
    if blocks < asked:
        log.warning(
            "%s ended after %d of %d tokens; %d more, less than a block, are left out",
            *(place, blocks * length, asked * length, dropped),
        )


def _separator_id(tokenizer: LoadedTokenizer) -> int:
    """Return EOS, the token that ends a document in packed text."""
    if tokenizer.eos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no EOS token, which separates documents in "
            "packed text; name it in its tokenizer_config.json (`eos_token`)"
        )
    return int(tokenizer.eos_token_id)


def _documents(split: ResolvedSplit, item: Slice, name: str, count: Counter[str]) -> Iterator[str]:
    """Yield the texts of a slice, without skipped and empty ones."""
    key, is_template = f"slices.{name}.text", "{{" in item.text or "{%" in item.text
    field = f"row[{item.text!r}]"
    text_of = compile_template(key, item.text) if is_template else compile_expression(key, field)
    for number, row in enumerate(split.rows()):
        if number < item.skip_documents:
            count["skipped"] += 1
            continue
        with at_row(f"slice {name}: {split}, row {number}"):
            text = "" if (value := text_of(values_of(row))) is None else value
            if not isinstance(text, str):
                what = f"the text is {kind_of(text)}, not text"
                raise SourceError(f"{what}; set `text` to a template that makes it one")
            check_unicode(text)
        if text.strip():
            yield text
        else:
            count["empty"] += 1


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
) -> tuple[torch.Tensor, dict[str, torch.Tensor], int]:
    """Join documents and cut them into `blocks` blocks of tokens at most.

    Args:
        around: Ids that are put before each document, and after it.

    Returns:
        Tokens (blocks, length); the content of index.pt: `block_bytes` (blocks,), flat `document_starts` and
        the bytes of the tokens there; and the number of tokens behind the last block.
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
    index = {
        "block_bytes": torch.from_numpy(scored.sum(axis=1)),
        "document_starts": torch.from_numpy(inside),
        "start_bytes": torch.from_numpy(sizes[inside]),
    }
    return torch.from_numpy(ids).reshape(count, length), index, total - count * length


def _without_text(ids: Sequence[int]) -> EncodedDocument:
    return EncodedDocument(np.array(ids, dtype=np.int32), np.zeros(len(ids), dtype=np.int32))
