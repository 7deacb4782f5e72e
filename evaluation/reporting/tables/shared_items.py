"""Two checkpoints over all items that both were scored on: one pair, one family of tests.

The items may be of any stage's suite: a bridge was scored on the suite of the stage that follows it.
An overall value is the mean over the items of every pair, so that a row compares like with like.

Where one is a stage's bridge and the other its last step, their deltas are those of the stage's own
files; only what its suite does not have is tested here.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from evaluation.bridge.delta import OVERALL, Delta, corrected, delta_columns
from evaluation.bridge.deltas import tier_deltas
from evaluation.bridge.pairing import Pair, check_comparable
from evaluation.errors import BridgeError
from evaluation.results.deltas_file import DeltaRow
from evaluation.results.read import Results, TierResults
from evaluation.results.stage_files import RetentionRow
from evaluation.settings.tiers import TIERS, TierName

log = logging.getLogger(__name__)

_ALIKE = ("tier", "item", "value", "delta", "low", "high", "p_holm", "n", "flag")

Read = Callable[[Path, TierName], TierResults | None]
Pairs = Mapping[TierName, Pair]


@dataclass(frozen=True)
class Anchor:
    """A checkpoint that stands for what a stage ended with, and the results that there are of it."""

    label: str
    identity: str
    sides: tuple[Results, ...]


def paired(earlier: Anchor, later: Anchor, read: Read) -> Pairs:
    """Return by tier both checkpoints over all items of theirs that hold the same data."""
    found = {tier: _joined(list(_comparable(earlier, later, tier, read))) for tier in TIERS}
    return {tier: pair for tier, pair in found.items() if pair is not None}


def _comparable(earlier: Anchor, later: Anchor, tier: TierName, read: Read) -> Iterator[Pair]:
    """Yield what each two of their results share."""
    for theirs, ours in product(earlier.sides, later.sides):
        if tier not in theirs.tiers or tier not in ours.tiers:
            continue
        mine, other = read(ours.folder, tier), read(theirs.folder, tier)
        if mine is not None and other is not None:
            same = [
                name
                for name, item in mine.items.items()
                if name in other.items and item.same == other.items[name].same
            ]
            pair = Pair(mine, other).over(same)
            if pair.ours.items and _may_be_compared(pair):
                yield pair


def _may_be_compared(pair: Pair) -> bool:
    """Return whether nothing forbids it, such as another tokenizer."""
    try:
        check_comparable(*pair.results())
    except BridgeError as error:
        log.warning("not in the table of retention: %s", error)
        return False
    return True


def _joined(pairs: Sequence[Pair]) -> Pair | None:
    """Take each item from the results that share most, and rates over all units if these share all."""
    if not pairs:
        return None
    first, *others = sorted(pairs, key=lambda pair: -len(pair.ours.items))
    ours, theirs = dict(first.ours.items), dict(first.theirs.items)
    for pair in others:
        ours = {**pair.ours.items, **ours}
        theirs = {**pair.theirs.items, **theirs}
    overall = first.ours.overall if len(ours) == len(first.ours.items) else None
    return Pair(
        replace(first.ours, items=ours, overall=overall), replace(first.theirs, items=theirs)
    )


def shared_by_all(pairs: Sequence[Pairs]) -> dict[TierName, tuple[str, ...]]:
    """Return by tier the items of every pair, where some pair has more."""
    found: dict[TierName, tuple[str, ...]] = {}
    for tier in TIERS:
        known = [pair[tier].ours.items for pair in pairs if tier in pair]
        names = [name for name in (known[0] if known else ()) if all(name in k for k in known)]
        if not TIERS[tier].rates and any(len(items) > len(names) for items in known):
            found[tier] = tuple(names)
    return found


def retention_rows(
    earlier: Anchor,
    later: Anchor,
    pairs: Pairs,
    shared: Mapping[TierName, Sequence[str]],
    known: Sequence[DeltaRow],
) -> Iterator[RetentionRow]:
    """Yield all rows of two checkpoints; `known` are the deltas that a stage has of these two."""
    deltas = [delta for tier, pair in pairs.items() for delta in _deltas(pair, shared.get(tier))]
    of_stage = {
        (row.tier, row.item, row.metric): row
        for row in known
        if row.item != OVERALL or row.tier not in shared
    }
    new = corrected([one for one in deltas if (one.tier, one.item, one.metric) not in of_stage])
    tested = {(one.tier, one.item, one.metric): one for one in new}
    for delta in deltas:
        key = delta.tier, delta.item, delta.metric
        found = of_stage[key].model_dump() if key in of_stage else delta_columns(tested[key])
        values = {
            "metric": delta.metric.removeprefix("delta_"),
            "earlier_value": found["bridge_value"],
            **{name: found[name] for name in _ALIKE},
        }
        if delta.item == OVERALL and (names := shared.get(delta.tier)) is not None:
            count = f"{len(names)} shared {'item' if len(names) == 1 else 'items'}"
            values["item"] = f"{OVERALL} of {count}"
        yield RetentionRow(earlier=earlier.label, later=later.label, **values)


def _deltas(pair: Pair, shared: Sequence[str] | None) -> list[Delta]:
    """Return the deltas of all items, and of the mean over the shared ones where these are given."""
    found = tier_deltas(pair)
    if shared is None:
        return found
    of_items = [delta for delta in found if delta.item != OVERALL]
    overall = tier_deltas(pair.over(shared)) if shared else []
    return [*of_items, *(delta for delta in overall if delta.item == OVERALL)]
