"""Items that gained or lost against the bridge: what a page shows of them, and how they are chosen."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluation.errors import CacheError
from evaluation.metrics.spread import Floats
from evaluation.prefill.entries import META, read_meta
from evaluation.results.kinds import CreditItem, Credits
from evaluation.results.read import TierResults
from evaluation.settings.tiers import TierName

log = logging.getLogger(__name__)

Turned = Literal["right", "wrong", "same"]

Shape = Literal["block", "choices", "answers", "credit"]
"""How a page draws a flip."""

GONE = "(the text is no longer in the cache that was scored)"
NOT_STORED = "(not stored)"

LONGEST = 100_000
"""Characters of a prompt or response that are shown."""


@dataclass(frozen=True, kw_only=True)
class Flip:
    """A question, prompt or block: `shared` is the same at every step, `ours` is this step's."""

    id: str
    turned: Turned
    shared: dict[str, Any]
    ours: Any


@dataclass(frozen=True, kw_only=True)
class ItemFlips:
    """A slice, task or category: how many of its units gained and lost, and those that are shown."""

    shape: Shape
    tier: TierName
    item: str
    of: int
    gained: int
    lost: int
    shown: Sequence[Flip]
    label: str = ""


def item_flips(
    shape: Shape, ours: TierResults, item: str, gain: Floats, shown: Sequence[Flip], label: str = ""
) -> ItemFlips:
    """Count the units by the sign of their gain, (n,)."""
    return ItemFlips(
        shape=shape,
        tier=ours.tier.name,
        item=item,
        of=len(gain),
        gained=int((gain > 0).sum()),
        lost=int((gain < 0).sum()),
        shown=shown,
        label=label,
    )


def largest(gain: Floats, most: int, size: Floats | None = None) -> list[tuple[int, Turned]]:
    """Return the places of the `most` largest gains, then of the largest losses.

    They are ordered by `size`, (n,), where that is not the gain itself.
    """
    size = np.abs(gain if size is None else size)
    directions: tuple[tuple[Turned, int], ...] = (("right", 1), ("wrong", -1))
    chosen: list[tuple[int, Turned]] = []
    for turned, sign in directions:
        found = np.flatnonzero(gain * sign > 0)
        order = np.argsort(-size[found], kind="stable")
        chosen += [(int(place), turned) for place in found[order][:most]]
    return chosen


def paired_credits(
    ours: TierResults, bridge: TierResults
) -> Iterator[tuple[str, Credits, Credits]]:
    """Yield each item with both sides' headline credits, over the units that both could judge."""
    headline = ours.tier.headline
    for name, item in ours.items.items():
        other = bridge.items.get(name)
        if not isinstance(item, CreditItem) or not isinstance(other, CreditItem):
            continue
        mine, theirs = item.credits.get(headline), other.credits.get(headline)
        if mine is not None and theirs is not None:
            mine, theirs = mine.without(theirs), theirs.without(mine)
            if mine.ids == theirs.ids:
                yield name, mine, theirs


def flipped_credit(ours: TierResults, bridge: TierResults, most: int) -> Iterator[ItemFlips]:
    """Yield the units whose credit changed most, of a tier that has no texts to show."""
    for name, mine, theirs in paired_credits(ours, bridge):
        gain = mine.credit - theirs.credit
        flips = [
            Flip(
                id=mine.ids[place],
                turned=turned,
                shared={"theirs": rounded(theirs.credit[place])},
                ours=rounded(mine.credit[place]),
            )
            for place, turned in largest(gain, most)
        ]
        yield item_flips("credit", ours, name, gain, flips)


def scored_cache(folder: Path, checksum: Any) -> dict[str, Any] | None:
    """Return the meta.json of a cache, or None if it was cleared, is damaged, or holds other data."""
    if not (folder / META).exists():
        return None
    try:
        meta = read_meta(folder)
    except CacheError as error:
        log.warning("texts are not shown: %s", error)
        return None
    stored = meta.get("checksum", {})
    if not isinstance(checksum, dict):  # an external program's
        return meta if stored == checksum else None
    return meta if checksum and checksum.items() <= stored.items() else None


def cut(text: str, *, from_end: bool = False, most: int = LONGEST) -> str:
    """Shorten a text to what is shown; a prompt asks at its end, after its solved examples."""
    if len(text) <= most:
        return text
    return f"… {text[-most:]}" if from_end else f"{text[:most]} … ({len(text)} characters)"


def rounded(value: float) -> float:
    return float(f"{value:.5g}")
