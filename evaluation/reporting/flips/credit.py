"""Items of a tier that has no texts of its own to show: which of their units turned."""

from collections.abc import Iterable

import numpy as np

from evaluation.reporting.flips.moved import Flip, Moved, Turned, rounded
from evaluation.results.kinds import CreditItem, Credits
from evaluation.results.read import TierResults


def flipped_credit(ours: TierResults, bridge: TierResults, most: int) -> Iterable[Moved]:
    """Units of each item whose credit in the headline moved most."""
    headline = ours.tier.headline
    for name, item in ours.items.items():
        other = bridge.items.get(name)
        if not isinstance(item, CreditItem) or not isinstance(other, CreditItem):
            continue
        if headline in item.credits and headline in other.credits:
            mine, theirs = item.credits[headline], other.credits[headline]
            if mine.ids == theirs.ids:
                yield _moved(ours.tier.name, name, mine, theirs, most)


def _moved(tier: str, name: str, mine: Credits, theirs: Credits, most: int) -> Moved:
    change = mine.credit - theirs.credit
    shown = []
    turns: tuple[tuple[Turned, int], ...] = (("right", 1), ("wrong", -1))
    for turned, sign in turns:
        found = np.flatnonzero(change * sign > 0)
        for i in found[np.argsort(-np.abs(change[found]), kind="stable")][:most]:
            sides = rounded(mine.credit[i]), rounded(theirs.credit[i])
            shown.append(
                Flip(id=mine.ids[i], turned=turned, shared={"theirs": sides[1]}, ours=sides[0])
            )
    return Moved(
        shape="credit",
        tier=tier,
        item=name,
        of=len(change),
        gained=int((change > 0).sum()),
        lost=int((change < 0).sum()),
        shown=shown,
    )
