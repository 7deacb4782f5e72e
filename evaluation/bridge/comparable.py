"""Refuse results whose difference would be meaningless, and note what else differs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.bridge.pairing import AGAIN, Pair
from evaluation.errors import BridgeError, first_few
from evaluation.results.read import Item, Results, TierResults

_OF_TOKENS = ("data", "prompts")
"""Checksums of data that holds token ids, which differs with the tokenizer."""


def check_comparable(
    ours: Results, theirs: Results, *, across_tokenizers: bool = False
) -> list[str]:
    """Return a sentence for each difference that is allowed; raise BridgeError for others."""
    notes: list[str] = []
    for name, mine in ours.tiers.items():
        other = theirs.tiers.get(name)
        if other is None:
            raise BridgeError(f"{theirs.folder}: has no {name}, which {ours.folder} has; score it")
        _check_tier(mine, other, _OF_TOKENS if across_tokenizers else ())
        notes += [f"{name}: {note}" for note in _notes(mine, other)]
    headers = [side.tiers[next(iter(ours.tiers))].file for side in (ours, theirs)]
    lengths = [header.trained_sequence_length for header in headers]
    positions = [header.rotary_embedding for header in headers]
    return [
        *_unlike("trained on sequences of {:,} tokens, the bridge on {:,}", *lengths),
        *_unlike("positions by {}, those of the bridge by {}", *positions),
        *notes,
    ]


def _check_tier(mine: TierResults, other: TierResults, left_out: Sequence[str]) -> None:
    """Refuse tiers that differ; `left_out` names what may differ, and where given, tokenizers may, too."""
    ours, theirs = mine.file, other.file
    same: dict[str, tuple[Any, Any]] = {"protocol": (ours.protocol, theirs.protocol)}
    if not left_out:
        same["tokenizer"] = ours.tokenizer.identity, theirs.tokenizer.identity
    same["sequence length"] = ours.sequence_length, theirs.sequence_length
    if ours.dtype is not None and theirs.dtype is not None:  # an external command may not state it
        same["dtype"] = ours.dtype, theirs.dtype
    same |= {what: (value, other.same.get(what)) for what, value in mine.same.items()}
    for what, values in same.items():
        if what not in left_out:
            _check_same(what, values, (mine.path, other.path))
    if mine.tier.rates:
        return
    _check_names(mine, other)
    for name, item in mine.items.items():
        for what, value in item.same.items():
            if what not in left_out:
                values = value, other.items[name].same.get(what)
                where = mine.folder, other.folder
                _check_same(f"{what} of {mine.tier.item} {name!r}", values, where)


def _check_same(what: str, values: tuple[Any, Any], where: tuple[object, object]) -> None:
    if values[0] != values[1]:
        ours, theirs = _shown(*values), _shown(*values[::-1])
        instead = "compare the bits per byte of both summary.csv" if what == "tokenizer" else AGAIN
        raise BridgeError(
            f"{what}: {ours} in {where[0]}, but {theirs} in {where[1]}; they must not be compared: {instead}"
        )


def _shown(value: object, other: object) -> str:
    """Return a value as a message shows it: of a mapping what differs, of a checksum its first digits."""
    shown = repr(value)
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        differing = {key: part for key, part in value.items() if other.get(key) != part}
        shown = ", ".join(f"{key} {part!r}" for key, part in differing.items()) or "nothing else"
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1…", shown)


def _check_names(mine: TierResults, other: TierResults) -> None:
    sides = (mine, other), (other, mine)
    alone = [(a.folder, [name for name in a.items if name not in b.items]) for a, b in sides]
    if any(names for _, names in alone):
        differ = (f"{folder} has {first_few(names, 4)} alone" for folder, names in alone if names)
        raise BridgeError(f"the suites differ: {'; '.join(differ)}; score the same suites on both")


def _notes(mine: TierResults, other: TierResults) -> Iterator[str]:
    """Yield notes on groups that cannot be compared, on engines, and on causes of floating-point noise."""
    ours, theirs = mine.file, other.file
    tokens = () if mine.tier.rates else (ours.row_tokens, theirs.row_tokens)
    rows = [" and ".join(f"{n:,}" for n in of_side) or None for of_side in tokens] or [None, None]
    for name in {**ours.groups, **theirs.groups}:
        if name not in Pair(mine, other).groups:
            yield f"the group {name} is not the same on both sides"
    noise = "" if ours.dtype in (None, "float32") else f"; in {ours.dtype} that moves single items"
    noise += " (docs/gpu.md)" if noise else ""
    differ = (
        *_unlike("on the device {}, the bridge on {}", ours.device, theirs.device),
        *_unlike("on the GPU {}, the bridge on {}", ours.gpu, theirs.gpu),
        *_unlike("in rows of {} tokens, the bridge in rows of {}", *rows),
    )
    yield from (f"scored {sentence}{noise}" for sentence in differ)
    engines: dict[tuple[str | None, str | None], list[str]] = {}
    for name, item in mine.items.items():
        there = other.items.get(name)
        engines.setdefault((_engine(item), None if there is None else _engine(there)), []).append(
            name
        )
    for sides, names in engines.items():
        if None not in sides and sides[0] != sides[1]:
            yield (
                f"completions of {', '.join(names)} are by {sides[0]}, those of the bridge by {sides[1]}; "
                "engines round otherwise and draw other samples, which moves single items"
            )


def _engine(item: Item) -> str | None:
    """Return the engine that wrote an item's completions, with its version; None if it has none."""
    if not item.entry.decoding:
        return None
    engine = item.entry.engine
    return (
        "the built-in engine" if engine is None else f"{engine.name} {engine.version or ''}".strip()
    )


def _unlike(sentence: str, here: object, there: object) -> Iterator[str]:
    """Yield a note on how the sides differ, if both values are known."""
    if here is not None and there is not None and here != there:
        yield sentence.format(here, there)
