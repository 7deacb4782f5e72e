"""Refuse results whose difference would be meaningless, and note what else differs."""

import re
from collections.abc import Iterator, Mapping, Sequence

from evaluation.bridge.pairing import AGAIN, Pair
from evaluation.errors import BridgeError, first_few
from evaluation.results.kinds import Item
from evaluation.results.read import Results, TierResults
from evaluation.results.verified_files import GenerationEntry

_OF_TOKENS = ("data", "prompts")
"""Checksums of data that holds token ids, which differs with the tokenizer."""

_MOVES = "that moves single items (docs/gpu.md)"


def check_comparable(
    ours: Results, theirs: Results, *, across_tokenizers: bool = False
) -> list[str]:
    """Refuse results that must not be compared, and return a sentence for each difference that is allowed.

    Args:
        across_tokenizers: Whether tokenizers, and with them token ids, may differ.

    Raises:
        BridgeError: Protocol, tokenizer, sequence length, dtype or data of a tier disagree.
    """
    notes: list[str] = []
    for name, mine in ours.tiers.items():
        other = theirs.tiers.get(name)
        if other is None:
            raise BridgeError(f"{theirs.folder}: has no {name}, which {ours.folder} has; score it")
        _check_tier(mine, other, _OF_TOKENS if across_tokenizers else ())
        notes += _notes(mine, other)
    headers = [side.tiers[next(iter(ours.tiers))].file for side in (ours, theirs)]
    lengths = [header.trained_sequence_length for header in headers]
    positions = [header.rotary_embedding for header in headers]
    return [
        *_unlike("trained on sequences of {:,} tokens, the bridge on {:,}", *lengths),
        *_unlike("positions by {}, those of the bridge by {}", *positions),
        *notes,
    ]


def _to_agree(
    mine: TierResults, other: TierResults, left_out: Sequence[str]
) -> dict[str, tuple[object, object]]:
    """Return what has to be the same on both sides of a tier, with its value on each."""
    ours, theirs = mine.file, other.file
    same: dict[str, tuple[object, object]] = {"protocol": (ours.protocol, theirs.protocol)}
    if not left_out:
        same["tokenizer"] = ours.tokenizer.identity, theirs.tokenizer.identity
    same["sequence length"] = ours.sequence_length, theirs.sequence_length
    if ours.dtype is not None and theirs.dtype is not None:  # an external command may not state it
        same["dtype"] = ours.dtype, theirs.dtype
    same |= {
        what: (v, other.same.get(what)) for what, v in mine.same.items() if what not in left_out
    }
    return same


def _check_tier(mine: TierResults, other: TierResults, left_out: Sequence[str]) -> None:
    """Refuse tiers that differ; `left_out` names what may differ, and where given, tokenizers may, too."""
    for what, pair in _to_agree(mine, other, left_out).items():
        _same(what, *pair, mine.path, other.path)
    if not mine.tier.rates:
        _same_items(mine, other, left_out)


def _notes(mine: TierResults, other: TierResults) -> list[str]:
    """Return notes on groups that cannot be compared, on engines, and on causes of floating-point noise.

    In bfloat16 that noise is not small.
    """
    groups = {**mine.file.groups, **other.file.groups}
    apart = [name for name in groups if name not in Pair(mine, other).groups]
    notes = [f"the group {name} is not the same on both sides" for name in apart]
    notes += _on_one_side(mine, other)
    ours, theirs = mine.file, other.file
    noise = "" if ours.dtype in (None, "float32") else f"; in {ours.dtype} {_MOVES}"
    notes += [
        f"scored {sentence}{noise}"
        for sentence in (
            *_unlike("on the device {}, the bridge on {}", ours.device, theirs.device),
            *_unlike("on the GPU {}, the bridge on {}", ours.gpu, theirs.gpu),
            *_unlike("in rows of {} tokens, the bridge in rows of {}", _rows(mine), _rows(other)),
        )
    ]
    notes += engine_notes(mine, other)
    return [f"{mine.tier.name}: {note}" for note in notes]


def _on_one_side(mine: TierResults, other: TierResults) -> Iterator[str]:
    """Yield a note for each metric that only one side has of some items, and which is not compared there."""
    names = [name for name in mine.items if name in other.items]
    sides = [(name, mine.items[name], other.items[name]) for name in names]
    for metric in mine.tier.metrics:
        lacking = [
            name for name, *both in sides if sum(metric.name in x.metrics for x in both) == 1
        ]
        if lacking and not Pair(mine, other).is_external:
            yield (
                f"{metric.words} of {first_few(lacking, 4)} is on one side only, whose scores are of a "
                "later version; it is not compared"
            )


def engine_notes(mine: TierResults, other: TierResults) -> list[str]:
    """Return a note for each two engines whose completions are compared, with the tasks."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for name, item in mine.items.items():
        there = other.items.get(name)
        engines = _engine(item), there and _engine(there)
        if engines[0] and engines[1] and engines[0] != engines[1]:
            tasks.setdefault((engines[0], engines[1]), []).append(name)
    return [
        f"completions of {', '.join(names)} are by {ours}, those of the bridge by {theirs}; engines round "
        "otherwise and draw other samples, which moves single items"
        for (ours, theirs), names in tasks.items()
    ]


def _engine(item: Item) -> str | None:
    """Return the engine that wrote an item's completions, with its version; None if it has none."""
    if not isinstance(item.entry, GenerationEntry):
        return None
    engine, name = item.entry.engine, item.entry.decoding.get("engine")
    if engine is not None:
        return engine.title
    return str(name) if name else "the built-in engine"


def _unlike(sentence: str, here: object, there: object) -> Iterator[str]:
    """Yield a note on how the sides differ, if both values are known."""
    if here is not None and there is not None and here != there:
        yield sentence.format(here, there)


def _rows(side: TierResults) -> str | None:
    """Return the tokens of each packed row; None for generated answers, which have no rows."""
    rows = () if side.tier.rates else side.file.row_tokens
    return " and ".join(f"{tokens:,}" for tokens in rows) or None


def _same(what: str, mine: object, other: object, ours: object, theirs: object) -> None:
    if mine != other:
        raise BridgeError(
            f"{what}: {_shown(mine, other)} in {ours}, but {_shown(other, mine)} in {theirs}; they "
            f"must not be compared: {AGAIN}"
        )


def _shown(value: object, other: object) -> str:
    """Return a value as a message shows it: of a mapping what differs, of a checksum its first digits."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        differing = {key: part for key, part in value.items() if other.get(key) != part}
        shown = ", ".join(f"{key} {part!r}" for key, part in differing.items()) or "nothing else"
    else:
        shown = repr(value)
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1…", shown)


def _same_items(mine: TierResults, other: TierResults, left_out: Sequence[str]) -> None:
    kind, sides = mine.tier.item, ((mine, other), (other, mine))
    alone = [
        [name for name in side.items if name not in opposite.items] for side, opposite in sides
    ]
    if alone[0] and len(alone[0]) == len(mine.items):
        raise BridgeError(
            f"no {kind} in common: {mine.folder} has {first_few(alone[0], 4)}, {other.folder} has "
            f"{first_few(alone[1], 4)}; score the same suites"
        )
    if any(alone):
        differ = (
            f"{side.folder} has {first_few(names, 4)} alone"
            for (side, _), names in zip(sides, alone, strict=True)
            if names
        )
        raise BridgeError(f"the suites differ: {'; '.join(differ)}; score the same suites on both")
    for name, item in mine.items.items():
        for what, value in item.same.items():
            if what not in left_out:
                there = other.items[name].same.get(what)
                _same(f"{what} of {kind} {name!r}", value, there, mine.folder, other.folder)
