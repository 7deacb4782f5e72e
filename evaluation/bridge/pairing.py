"""Refusals: what two results must share before their difference means anything."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import BridgeError
from evaluation.results.read import Results, TierResults

AGAIN = "score both sides again with the same version and settings"

OF_TOKENS = ("data", "prompts")
"""Checksums of what holds token ids, and so is another's with every tokenizer."""


def check_comparable(
    ours: Results, theirs: Results, *, across_tokenizers: bool = False
) -> list[str]:
    """Notes on what differs between two results that may be compared.

    `across_tokenizers` lets pass another tokenizer, and that the same texts are other tokens in it.

    Raises:
        BridgeError: protocol, tokenizer, sequence length, dtype or data of a tier disagree.
    """
    notes = []
    for name, mine in ours.tiers.items():
        other = theirs.tiers.get(name)
        if other is None:
            raise BridgeError(f"{theirs.folder}: has no {name}, which {ours.folder} has; score it")
        _check_tier(mine, other, OF_TOKENS if across_tokenizers else ())
        notes += _notes(mine, other)
    return notes


def _check_tier(mine: TierResults, other: TierResults, left_out: Sequence[str]) -> None:
    """`left_out` is what need not be the same; with it, the tokenizer need not be either."""
    _same("protocol", mine.file.protocol, other.file.protocol, mine.path, other.path)
    if not left_out:
        ours, theirs = mine.file.tokenizer.identity, other.file.tokenizer.identity
        _same("tokenizer", ours, theirs, mine.path, other.path)
    lengths = mine.file.sequence_length, other.file.sequence_length
    _same("sequence length", *lengths, mine.path, other.path)
    if mine.file.dtype is not None and other.file.dtype is not None:  # else it is not known
        _same("dtype", mine.file.dtype, other.file.dtype, mine.path, other.path)
    for what, value in mine.same.items():
        if what not in left_out:
            _same(what, value, other.same.get(what), mine.path, other.path)
    if not mine.tier.rates:
        _same_items(mine, other, left_out)


def _notes(mine: TierResults, other: TierResults) -> list[str]:
    """What changes numbers by no more than floating-point noise, which in bfloat16 is not small."""
    pairs = {
        "scored on the device {}, the bridge on {}": (mine.file.device, other.file.device),
        "scored on the GPU {}, the bridge on {}": (mine.file.gpu, other.file.gpu),
    }
    if not mine.tier.rates:  # answers are written without rows
        rows = "scored in rows of {} tokens, the bridge in rows of {}"
        pairs[rows] = (_rows(mine), _rows(other))
    return [
        f"{mine.tier.name}: {sentence.format(here, there)}{_noise(mine.file.dtype)}"
        for sentence, (here, there) in pairs.items()
        if here is not None and there is not None and here != there
    ]


def _rows(side: TierResults) -> str | None:
    """Tokens of a row, of all if scores come from several; None where the file does not tell."""
    return " and ".join(f"{tokens:,}" for tokens in side.file.row_tokens) or None


def _noise(dtype: str | None) -> str:
    if dtype in (None, "float32"):
        return ""
    return f"; in {dtype} that moves single items (docs/gpu.md)"


def _same(what: str, mine: object, other: object, ours: object, theirs: object) -> None:
    if mine != other:
        raise BridgeError(
            f"{what}: {mine!r} in {ours}, but {other!r} in {theirs}; they must not be compared: {AGAIN}"
        )


def _same_items(mine: TierResults, other: TierResults, left_out: Sequence[str]) -> None:
    kind = mine.tier.item
    sides: tuple[tuple[Mapping[str, Any], TierResults], ...]
    sides = ((mine.items, other), (other.items, mine))
    for names, lacking in sides:
        missing = [name for name in names if name not in lacking.items]
        if missing:
            raise BridgeError(
                f"{lacking.folder}: has no {kind} {missing[0]!r}, which the other side has; {AGAIN}"
            )
    for name, item in mine.items.items():
        for what, value in item.same.items():
            if what not in left_out:
                there = other.items[name].same.get(what)
                _same(f"{what} of {kind} {name!r}", value, there, mine.folder, other.folder)


def check_ids(
    what: str, mine: Sequence[Any], other: Sequence[Any], ours: Path, theirs: Path
) -> None:
    """Raises BridgeError unless both folders hold the same items in the same order."""
    if list(mine) == list(other):
        return
    lone = next(iter(_lone(mine, other)), None) or next(iter(_lone(other, mine)), None)
    seen = f"{lone} is on one side only" if lone is not None else "their order differs"
    raise BridgeError(
        f"{what}: the items of {ours} ({len(mine)}) are not those of {theirs} ({len(other)}): "
        f"{seen}; {AGAIN}"
    )


def _lone(some: Iterable[Any], others: Iterable[Any]) -> list[str]:
    known = set(others)
    return [str(item) for item in some if item not in known]
