"""The results of two checkpoints as pairs of tiers, and of items."""

from collections.abc import Sequence
from typing import NamedTuple

from evaluation.results.read import Item, Results, TierResults
from evaluation.settings.tiers import Tier

AGAIN = "score both sides again with the same version and settings"


class Pair(NamedTuple):
    """A tier of both sides; `both` has name, our side and the other side of each item that both have."""

    tier: Tier
    ours: TierResults
    theirs: TierResults
    both: Sequence[tuple[str, Item, Item]]


def tier_pairs(ours: Results, theirs: Results) -> list[Pair]:
    """Return a pair for each tier of our side, which the other side must have, too."""
    pairs = []
    for name, mine in ours.tiers.items():
        other = theirs.tiers[name]
        both = [(n, item, other.items[n]) for n, item in mine.items.items() if n in other.items]
        pairs.append(Pair(mine.tier, mine, other, both))
    return pairs
