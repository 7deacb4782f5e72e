"""Two results paired, and refused where their difference would mean nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from evaluation.errors import BridgeError
from evaluation.results.kinds import CreditItem, Credits, NatsItem
from evaluation.results.read import Results, TierResults
from evaluation.results.tier_files import TierFile
from evaluation.settings.tiers import Tier

AnyItem = TypeVar("AnyItem", NatsItem, CreditItem)

AGAIN = "score both sides again with the same version and settings"

OF_TOKENS = ("data", "prompts")
"""Checksums of what holds token ids, and so differs with every tokenizer."""


@dataclass(frozen=True)
class Pair:
    """A tier of both sides."""

    ours: TierResults
    theirs: TierResults

    @property
    def tier(self) -> Tier:
        return self.ours.tier

    @property
    def is_external(self) -> bool:
        """Whether an external command wrote one of the two."""
        return self.ours.file.is_external or self.theirs.file.is_external

    @property
    def groups(self) -> Mapping[str, Mapping[str, float]]:
        """Return the weights in each group that both sides have alike."""
        other = self.theirs.file.groups
        return {name: own for name, own in self.ours.file.groups.items() if other.get(name) == own}

    def items(self, kind: type[AnyItem]) -> Iterator[tuple[str, AnyItem, AnyItem]]:
        """Yield the items of a kind that both sides have, with their names."""
        for name, mine in self.ours.items.items():
            other = self.theirs.items.get(name)
            if isinstance(mine, kind) and isinstance(other, kind):
                yield name, mine, other

    def credits(self) -> Iterator[tuple[str, Credits, Credits]]:
        """Yield both sides' credits of each item by the headline, over the units both could judge."""
        headline = self.tier.headline
        for name, mine, other in self.items(CreditItem):
            if headline in mine.credits and headline in other.credits:
                left, right = mine.credits[headline], other.credits[headline]
                left, right = left.without(right), right.without(left)
                if left.ids == right.ids:
                    yield name, left, right

    def over(self, names: Iterable[str]) -> "Pair":
        """Return the pair over some of its items; rates over all units stay."""
        kept = list(names)
        sides = (
            replace(side, items={name: side.items[name] for name in kept})
            for side in (self.ours, self.theirs)
        )
        return Pair(*sides)

    def results(self) -> tuple[Results, Results]:
        """Return each side as results of this tier alone."""
        ours, theirs = (
            Results(folder=side.folder, tiers={side.tier.name: side})
            for side in (self.ours, self.theirs)
        )
        return ours, theirs

    def check_ids(self, what: str, mine: Iterable[Any], other: Iterable[Any]) -> None:
        """Raise BridgeError unless both sides hold the same units in the same order."""
        mine, other = list(mine), list(other)
        if mine == other:
            return
        singleton = next(
            (one for a, b in ((mine, other), (other, mine)) for one in _alone(a, b)), None
        )
        seen = "their order differs" if singleton is None else f"{singleton} is on one side only"
        raise BridgeError(
            f"{self.tier.unit} of {what!r}: the items of {self.ours.folder} ({len(mine)}) are not those "
            f"of {self.theirs.folder} ({len(other)}): {seen}; {AGAIN}"
        )


def _alone(some: Iterable[Any], others: Iterable[Any]) -> Iterator[Any]:
    known = set(others)
    return (item for item in some if item not in known)


def tier_pairs(ours: Results, theirs: Results) -> list[Pair]:
    """Return a pair for each tier of ours."""
    return [Pair(mine, theirs.tiers[name]) for name, mine in ours.tiers.items()]


def check_comparable(
    ours: Results, theirs: Results, *, across_tokenizers: bool = False
) -> list[str]:
    """Return notes on what differs between two results that may be compared.

    `across_tokenizers` allows another tokenizer, in which the same texts are other tokens.

    Raises:
        BridgeError: protocol, tokenizer, sequence length, dtype or data of a tier disagree.
    """
    notes: list[str] = []
    for name, mine in ours.tiers.items():
        other = theirs.tiers.get(name)
        if other is None:
            raise BridgeError(f"{theirs.folder}: has no {name}, which {ours.folder} has; score it")
        _check_tier(mine, other, OF_TOKENS if across_tokenizers else ())
        notes += _notes(mine, other)
    first = next(iter(ours.tiers))
    return [*_trained_otherwise(ours.tiers[first].file, theirs.tiers[first].file), *notes]


def _trained_otherwise(mine: TierFile, other: TierFile) -> Iterator[str]:
    """Yield how the models differ in the context that they were trained for."""
    pairs = {
        "trained on sequences of {:,} tokens, the bridge on {:,}": (
            mine.trained_sequence_length,
            other.trained_sequence_length,
        ),
        "positions by {}, those of the bridge by {}": (
            mine.rotary_embedding,
            other.rotary_embedding,
        ),
    }
    for sentence, (here, there) in pairs.items():
        if here is not None and there is not None and here != there:
            yield sentence.format(here, there)


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
    """Return groups that cannot be compared, and what changes numbers by floating-point noise alone.

    In bfloat16 that is not small.
    """
    pairs = {
        "scored on the device {}, the bridge on {}": (mine.file.device, other.file.device),
        "scored on the GPU {}, the bridge on {}": (mine.file.gpu, other.file.gpu),
    }
    if not mine.tier.rates:  # answers are written without rows
        rows = "scored in rows of {} tokens, the bridge in rows of {}"
        pairs[rows] = (_rows(mine), _rows(other))
    groups = {**mine.file.groups, **other.file.groups}
    apart = [name for name in groups if name not in Pair(mine, other).groups]
    notes = [f"{mine.tier.name}: the group {name} is not the same on both sides" for name in apart]
    return notes + [
        f"{mine.tier.name}: {sentence.format(here, there)}{_noise(mine.file.dtype)}"
        for sentence, (here, there) in pairs.items()
        if here is not None and there is not None and here != there
    ]


def _rows(side: TierResults) -> str | None:
    """Return the tokens of a packed row, or of several; None where the file has none."""
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
