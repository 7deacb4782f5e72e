"""Tier2 slices: text of a source, packed into blocks of tokens."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from evaluation.errors import ConfigError, SourceError, kind_of
from evaluation.prefill.caches import INDEX, TOKENS
from evaluation.prefill.entries import counted
from evaluation.prefill.packing import Packed, encode_documents, pack, smallest_dtype
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
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import bos_ids

log = logging.getLogger(__name__)


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
    packed = pack(
        encode_documents(tokenizer, _documents(split, item, name, count)),
        length=length,
        blocks=item.tokens // length,
        around=(bos_ids(tokenizer, plan.tokenizer.prepend_bos), [_separator_id(tokenizer)]),
    )
    _check_filled(packed, item, f"slice {name}: {split}", length)
    torch.save(packed.tokens.to(smallest_dtype(tokenizer.rows)), building / TOKENS)
    keys = ("block_bytes", "document_starts", "start_bytes")
    torch.save({key: getattr(packed, key) for key in keys}, building / INDEX)
    return _meta(packed, item, count, tokenizer) | {"source": describe([split], state)}


def _meta(
    packed: Packed, item: Slice, count: Counter[str], tokenizer: LoadedTokenizer
) -> dict[str, Any]:
    """Return meta.json without definition, tokenizer, source and checksums."""
    blocks, length = packed.tokens.shape
    asked = item.tokens // length
    return {
        "protocol": protocol.PREFILL_SLICE,
        "slice": item.model_dump(mode="json"),
        "documents": len(packed.document_starts),
        "documents_skipped": count["skipped"],
        "documents_empty": count["empty"],
        "blocks": blocks,
        "tokens": blocks * length,
        "bytes": int(packed.block_bytes.sum()),
        "asked": asked * length,
        "used": blocks * length,
        "items": counted(asked, blocks, **{"the data ended": asked - blocks}),
        "sequence_length": length,
        "vocab_size_needed": tokenizer.rows,
        "dtype": str(smallest_dtype(tokenizer.rows)).removeprefix("torch."),
    }


def _separator_id(tokenizer: LoadedTokenizer) -> int:
    """Return EOS, the token that ends a document in packed text."""
    if tokenizer.eos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no EOS token, which separates documents in "
            "packed text; name it in its tokenizer_config.json (`eos_token`)"
        )
    return int(tokenizer.eos_token_id)


def _check_filled(packed: Packed, item: Slice, place: str, length: int) -> None:
    blocks, asked = len(packed.tokens), item.tokens // length
    if blocks == 0:
        raise SourceError(
            f"{place} has {packed.dropped} tokens, less than one block of {length}; lower "
            "`skip_documents`, or choose a larger source"
        )
    if blocks < asked:
        log.warning(
            "%s ended after %d of %d tokens; %d more, less than a block, are left out",
            *(place, blocks * length, asked * length, packed.dropped),
        )


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
