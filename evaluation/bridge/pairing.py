"""The results of two checkpoints as pairs of tiers, of items, and of units that both sides judged."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from evaluation.errors import BridgeError
from evaluation.metrics.variance import Floats
from evaluation.results.kinds import Item
from evaluation.results.read import Results, TierResults
from evaluation.settings.tiers import Tier

AGAIN = "score both sides again with the same version and settings"


class JudgedUnits(NamedTuple):
    """An item's units that were judged on both sides, with their credits, (units,) each."""

    item: str
    ids: tuple[Any, ...]
    ours: Floats
    theirs: Floats

    @property
    def gain(self) -> Floats:
        """Our credits minus theirs."""
        return self.ours - self.theirs

    def only(self, ids: Collection[Any]) -> "JudgedUnits":
        """Return some of the units."""
        chosen = np.array([id in ids for id in self.ids], dtype=np.bool_)
        kept = tuple(compress(self.ids, chosen))
        return JudgedUnits(self.item, kept, self.ours[chosen], self.theirs[chosen])


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
    def both(self) -> Iterator[tuple[str, Item, Item]]:
        """Name, our side and the other side of each item that both have."""
        mine, others = self.ours.items, self.theirs.items
        return ((name, item, others[name]) for name, item in mine.items() if name in others)

    @property
    def judged(self) -> Iterator[JudgedUnits]:
        """The units of each item with the headline on both sides, where the sides have the same units."""
        headline = self.tier.headline
        for name, mine, other in self.both:
            left, right = mine.measured.get(headline), other.measured.get(headline)
            if left is None or right is None or mine.units is None or other.units is None:
                continue
            if [*mine.units.ids] == [*other.units.ids]:
                judged = left.is_judged & right.is_judged
                ids = tuple(compress(mine.units.ids, judged))
                yield JudgedUnits(name, ids, left.amounts[judged], right.amounts[judged])

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
        """Refuse a pair whose sides do not hold the same units in the same order; raise BridgeError.

        Args:
            what: Item or rate that the units belong to, for messages.
        """
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
