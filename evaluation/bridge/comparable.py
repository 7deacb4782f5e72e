"""Refuse results whose difference would be meaningless, and note what else differs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.bridge.pairing import AGAIN
from evaluation.errors import BridgeError, first_few
from evaluation.results.read import Results, TierResults
from evaluation.results.tier_files import OtherEngine

_OF_TOKENS = ("tokenizer", "data", "prompts")
"""A tokenizer, and checksums of data that holds its token ids."""


def check_comparable(
    ours: Results, theirs: Results, *, across_tokenizers: bool = False
) -> list[str]:
    """Return a sentence for each difference that is allowed; raise BridgeError for others."""
    notes: list[str] = []
    for name, mine in ours.tiers.items():
        other = theirs.tiers.get(name)
        if other is None:
            raise BridgeError(f"{theirs.folder}: has no {name}, which {ours.folder} has; score it")
        _check_same(mine, other, across_tokenizers)
        notes += [f"{name}: {note}" for note in _notes(mine, other)]
    headers = [side.tiers[next(iter(ours.tiers))].file for side in (ours, theirs)]
    lengths = [header.trained_sequence_length for header in headers]
    positions = [header.rotary_embedding for header in headers]
    return [
        *_unlike("trained on sequences of {:,} tokens, the bridge on {:,}", *lengths),
        *_unlike("positions by {}, those of the bridge by {}", *positions),
        *notes,
    ]


def _check_same(mine: TierResults, other: TierResults, across_tokenizers: bool) -> None:
    """Refuse tiers that were not scored alike, on the same data; raise BridgeError."""
    sides = (mine, other), (other, mine)
    alone = [(a, [name for name in a.items if name not in b.items]) for a, b in sides]
    if any(names for _, names in alone) and not mine.tier.rates:
        differ = (f"{a.folder} has {first_few(names, 4)} alone" for a, names in alone if names)
        raise BridgeError(f"the suites differ: {'; '.join(differ)}; score the same suites on both")
    ours, theirs = (_what_must_be_the_same(side, across_tokenizers) for side in (mine, other))
    for what, value in ours.items():
        there = theirs.get(what)
        # An external command may not state its dtype.
        is_unknown = what == "dtype" and None in (value, there)
        if value != there and not is_unknown:
            seen = (
                f"{_shown(value, there)} in {mine.path}, but {_shown(there, value)} in {other.path}"
            )
            instead = "compare the bits per byte of both summary.csv"
            remedy = instead if what == "tokenizer" else AGAIN
            raise BridgeError(f"{what}: {seen}; they must not be compared: {remedy}")


def _what_must_be_the_same(side: TierResults, across_tokenizers: bool) -> dict[str, Any]:
    """Return what both sides must have in common, of the tier and of each item, by its name in messages."""
    file, items = side.file, {} if side.tier.rates else side.items
    of_tier = {
        "protocol": file.protocol,
        "tokenizer": file.tokenizer.identity,
        "sequence length": file.sequence_length,
        "dtype": file.dtype,
        **side.same,
    }
    parts = {"": of_tier, **{f" of {side.tier.item} {n!r}": i.same for n, i in items.items()}}
    return {
        f"{what}{part}": value
        for part, same in parts.items()
        for what, value in same.items()
        if not (across_tokenizers and what in _OF_TOKENS)
    }


def _shown(value: object, other: object) -> str:
    """Return a value as a message shows it: of a mapping what differs, of a checksum its first digits."""
    shown = repr(value)
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        differing = {key: part for key, part in value.items() if other.get(key) != part}
        shown = ", ".join(f"{key} {part!r}" for key, part in differing.items()) or "nothing else"
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1…", shown)


def _notes(mine: TierResults, other: TierResults) -> Iterator[str]:
    """Yield notes on groups that cannot be compared, on engines, and on causes of floating-point noise."""
    ours, theirs = mine.file, other.file
    for name in {**ours.groups, **theirs.groups}:
        if ours.groups.get(name) != theirs.groups.get(name):
            yield f"the group {name} is not the same on both sides"
    tokens = () if mine.tier.rates else (ours.row_tokens, theirs.row_tokens)
    rows = [" and ".join(f"{n:,}" for n in of_side) or None for of_side in tokens] or [None, None]
    noise = "" if ours.dtype in (None, "float32") else f"; in {ours.dtype} that moves single items"
    noise += " (docs/gpu.md)" if noise else ""
    differ = (
        *_unlike("on the device {}, the bridge on {}", ours.device, theirs.device),
        *_unlike("on the GPU {}, the bridge on {}", ours.gpu, theirs.gpu),
        *_unlike("in rows of {} tokens, the bridge in rows of {}", *rows),
    )
    yield from (f"scored {sentence}{noise}" for sentence in differ)
    engines: dict[tuple[str, str], list[str]] = {}
    for name in (name for name in mine.items if name in other.items):
        here, there = (side.items[name].entry for side in (mine, other))
        if here.decoding and there.decoding and here.engine != there.engine:
            engines.setdefault((_named(here.engine), _named(there.engine)), []).append(name)
    for (here_by, there_by), names in engines.items():
        yield (
            f"completions of {', '.join(names)} are by {here_by}, those of the bridge by {there_by}; "
            "engines round otherwise and draw other samples, which moves single items"
        )


def _named(engine: OtherEngine | None) -> str:
    """Return the name of an engine that writes completions, with its version."""
    return (
        "the built-in engine" if engine is None else f"{engine.name} {engine.version or ''}".strip()
    )


def _unlike(sentence: str, here: object, there: object) -> Iterator[str]:
    """Yield a note on how the sides differ, if both values are known."""
    if here is not None and there is not None and here != there:
        yield sentence.format(here, there)
