"""The results of two checkpoints as pairs of tiers, of items, and of units that both sides judged."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from evaluation.errors import BridgeError
from evaluation.results.read import Item, Results, TierResults
from evaluation.settings.tiers import Tier

AGAIN = "score both sides again with the same version and settings"


class Pair(NamedTuple):
    """A tier of both sides."""

    ours: TierResults
    theirs: TierResults

    @property
    def tier(self) -> Tier:
        """The tier that both sides are results of."""
        return self.ours.tier

    @property
    def groups(self) -> Mapping[str, Mapping[str, float]]:
        """The items' weights in each group that is the same on both sides."""
        ours, theirs = self.ours.file.groups, self.theirs.file.groups
        return {name: own for name, own in ours.items() if theirs.get(name) == own}

    @property
    def offsets(self) -> Mapping[str, float]:
        """What is subtracted from the weighted sum of each centered group."""
        return self.ours.file.offsets

    @property
    def both(self) -> Iterator[tuple[str, Item, Item]]:
        """Name, our side and the other side of each item that both have."""
        mine, others = self.ours.items, self.theirs.items
        return ((name, item, others[name]) for name, item in mine.items() if name in others)

    def over(self, names: Iterable[str]) -> "Pair":
        """Return the pair over some of its items, in this order; rates over all units stay."""
        chosen = list(names)
        return Pair(*(replace(s, items={name: s.items[name] for name in chosen}) for s in self))

    @property
    def results(self) -> tuple[Results, Results]:
        """Each side, ours first, as results of this tier alone."""
        ours, theirs = (Results(folder=side.folder, tiers={side.tier.name: side}) for side in self)
        return ours, theirs

    def check_ids(self, what: str, mine: Iterable[Any], other: Iterable[Any]) -> None:
        """Refuse a pair whose sides do not hold the same units in the same order; raise BridgeError."""
        mine, other = list(mine), list(other)
        if mine == other:
            return
        alone = next(iter([*({*mine} ^ {*other})]), None)
        why = "their order differs" if alone is None else f"{alone} is on one side only"
        raise BridgeError(
            f"{self.tier.unit} of {what!r}: the items of {self.ours.folder} ({len(mine)}) are not those "
            f"of {self.theirs.folder} ({len(other)}): {why}; {AGAIN}"
        )


def tier_pairs(ours: Results, theirs: Results) -> list[Pair]:
    """Return a pair for each tier of our side, which the other side must have, too."""
    return [Pair(mine, theirs.tiers[name]) for name, mine in ours.tiers.items()]
