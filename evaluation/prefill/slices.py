"""Tier2 slices: text of a source, packed into blocks of tokens."""

import itertools
import logging
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from evaluation.errors import ConfigError, SourceError, kind_of, no_such
from evaluation.prefill.caches import INDEX, TOKENS
from evaluation.prefill.definitions import slice_definition
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.files import DatasetRow, check_not_binary, check_unicode
from evaluation.prefill.packing import (
    DocumentPart,
    Packed,
    Packer,
    encode_documents,
    save_tokens,
    smallest_dtype,
)
from evaluation.prefill.sources import ResolvedSplit, locate_item
from evaluation.prefill.states import Sources
from evaluation.prefill.templates import at_row, compile_template, fields_of, values_of
from evaluation.prefill.tokenizers import fetch_tokenizer, stage_tokenizer
from evaluation.processes import progress
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.sources import Slice
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import bos_ids

log = logging.getLogger(__name__)

_SHUFFLED_DOCUMENTS = 10_000
_SHUFFLED_CHARACTERS = 32 << 20
"""Documents are shuffled within a window of so many documents, and of so many characters."""


@dataclass
class _Count:
    """Numbers of documents that were read, skipped, or empty."""

    read: int = 0
    skipped: int = 0
    empty: int = 0


def prefill_slice(plan: StagePlan, name: str) -> None:
    """Write a slice to `plan.cache_folder("tier2", name)` unless it is there already.

    Raises:
        SourceError: The data cannot be read, or does not fill a block.
        ConfigError: Fewer tokens are configured than one block has.
    """
    item = plan.suite.slices[name]
    blocks = item.tokens // plan.sequence_length
    if blocks == 0:
        raise ConfigError(
            f"slices.{name}.tokens: {item.tokens} is less than one block of "
            f"{plan.sequence_length} tokens; ask for more"
        )
    about = fetch_tokenizer(plan)
    origins, _ = locate_item(item, plan.config)
    origin = origins[0]
    definition = slice_definition(plan, name, about)
    sources = Sources(plan, [origin])
    folder = plan.cache_folder("tier2", name)
    if is_current(folder, definition, sources.are_as):
        return
    tokenizer = stage_tokenizer(plan)
    with new_entry(folder) as building:
        made = _build(plan, name, item, tokenizer, origin, building)
        made |= {"definition": definition, "tokenizer": about, "source": sources.describe()}
        write_meta(building, made, [TOKENS, INDEX])


_INDEX_KEYS = ("block_bytes", "document_starts", "start_bytes")


def _build(
    plan: StagePlan,
    name: str,
    item: Slice,
    tokenizer: LoadedTokenizer,
    origin: ResolvedSplit,
    building: Path,
) -> dict[str, Any]:
    """Write tokens and index into `building`; return the meta.json without its checksums."""
    length = plan.sequence_length
    asked = item.tokens // length
    dtype = smallest_dtype(tokenizer.rows)
    count = _Count()
    with tempfile.TemporaryFile(dir=building) as raw:
        packer = Packer(
            raw,
            sequence_length=length,
            blocks=asked,
            dtype=dtype,
            before=bos_ids(tokenizer, plan.tokenizer.prepend_bos),
            after=[_separator_id(tokenizer)],
        )
        _fill(packer, encode_documents(tokenizer, _documents(origin, item, name, count)), name)
        packed = packer.finish()
        _check_filled(packed, asked, name, origin, length)
        save_tokens(
            raw, building / TOKENS, blocks=packed.blocks, sequence_length=length, dtype=dtype
        )
    torch.save({key: getattr(packed, key) for key in _INDEX_KEYS}, building / INDEX)
    tokens = packed.blocks * length
    return {
        "protocol": protocol.PREFILL_SLICE,
        "slice": item.model_dump(mode="json"),
        "documents": len(packed.document_starts),
        "documents_skipped": count.skipped,
        "documents_empty": count.empty,
        "blocks": packed.blocks,
        "tokens": tokens,
        "bytes": int(packed.block_bytes.sum()),
        "asked": asked * length,
        "used": tokens,
        "items": {
            "asked": asked,
            "used": packed.blocks,
            "left_out": {"the data ended": asked - packed.blocks} if packed.blocks < asked else {},
        },
        "sequence_length": length,
        "vocab_size_needed": tokenizer.rows,
        "dtype": str(dtype).removeprefix("torch."),
    }


def _fill(packer: Packer, pieces: Iterator[DocumentPart], name: str) -> None:
    with progress(name, packer.wanted, "tok") as bar:
        for piece in pieces:
            packer.add(piece)
            bar.update(min(packer.total, packer.wanted) - bar.n)
            if packer.full:
                return


def _separator_id(tokenizer: LoadedTokenizer) -> int:
    """Return EOS, the token that ends a document in packed text."""
    if tokenizer.eos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no EOS token, which separates documents in "
            "packed text; name it in its tokenizer_config.json (`eos_token`)"
        )
    return int(tokenizer.eos_token_id)


def _check_filled(
    packed: Packed, asked: int, name: str, origin: ResolvedSplit, length: int
) -> None:
    if packed.blocks == 0:
        raise SourceError(
            f"slice {name}: {origin} has {packed.dropped} tokens, less than one block of {length}; "
            "lower `skip_documents`, or choose a larger source"
        )
    if packed.blocks < asked:
        log.warning(
            "slice %s: %s ended after %d of %d tokens; %d more, less than a block, are left out",
            *(name, origin, packed.blocks * length, asked * length, packed.dropped),
        )


def _documents(origin: ResolvedSplit, item: Slice, name: str, count: _Count) -> Iterator[str]:
    """Return the texts of a slice, without skipped and empty ones, shuffled if there is a seed."""
    text_of, fields = _text_of(item, name)
    rows = origin.rows(fields)
    for _ in itertools.islice(rows, item.skip_documents):
        count.skipped += 1
    texts = _texts(rows, text_of, f"slice {name}: {origin}", count)
    return texts if item.seed is None else shuffled(texts, item.seed)


def _text_of(item: Slice, name: str) -> tuple[Callable[[DatasetRow], Any], list[str]]:
    """Return a function that makes a row's text, and the fields that it reads."""
    template, fields = None, [item.text]
    if "{{" in item.text or "{%" in item.text:
        template = compile_template(f"slices.{name}.text", item.text)
        fields = sorted(fields_of(item.text))

    def text_of(row: DatasetRow) -> Any:
        check_not_binary({field: row[field] for field in fields if field in row})
        if template is not None:
            return template(values_of(row))
        if item.text not in row:
            raise SourceError(f"slices.{name}.text: {no_such('field', item.text, row)[:600]}")
        return row[item.text]

    return text_of, fields


def _as_text(value: Any) -> str:
    """Return a field's value as text, "" for None; raise SourceError where it is not text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise SourceError(
            f"the text is {kind_of(value)}, not text; set `text` to a template that makes it one"
        )
    check_unicode(value)
    return value


def _texts(
    rows: Iterator[DatasetRow], text_of: Callable[[DatasetRow], Any], where: str, count: _Count
) -> Iterator[str]:
    for row in rows:
        number = count.skipped + count.read
        count.read += 1
        with at_row(f"{where}, row {number}"):
            text = _as_text(text_of(row))
        if text.strip():
            yield text
        else:
            count.empty += 1


def shuffled(texts: Iterator[str], seed: int) -> Iterator[str]:
    """Yield each text once, in a random order drawn from a window of bounded size."""
    draw = random.Random(seed)
    window: list[str] = []
    characters = 0
    for text in texts:
        window.append(text)
        characters += len(text)
        while len(window) > _SHUFFLED_DOCUMENTS or characters > _SHUFFLED_CHARACTERS:
            chosen = draw.randrange(len(window))
            window[chosen], window[-1] = window[-1], window[chosen]
            characters -= len(window[-1])
            yield window.pop()
    draw.shuffle(window)
    yield from window
