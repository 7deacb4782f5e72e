"""Several checkpoints of one suite as one, whose items have their means."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import numpy as np

from evaluation.errors import ResultsError
from evaluation.results.kinds import Blocks, Companions, CreditItem, Credits, Item, NatsItem
from evaluation.results.read import Results, TierResults

Part = TypeVar("Part")


def mean_results(sides: Sequence[Results]) -> Results:
    """The means of all items over the sides, which have the same ones.

    Raises:
        ResultsError: they do not, or lack per-item scores.
    """
    first = sides[0]
    tiers = {name: _mean_tier([side.tiers[name] for side in sides]) for name in first.tiers}
    return replace(first, tiers=tiers)


def _mean_tier(sides: Sequence[TierResults]) -> TierResults:
    first = sides[0]
    if any(side.items.keys() != first.items.keys() for side in sides):
        raise ResultsError(
            f"{sides[-1].folder}: its {first.tier.item} names are not those of {first.folder}, so "
            "there is no mean over both; score the checkpoint again"
        )
    items = {name: _mean_item(sides, [side.items[name] for side in sides]) for name in first.items}
    overall = [side.overall for side in sides]
    known = [one for one in overall if one is not None]
    whole = _mean_credit_item(sides, known) if len(known) == len(sides) else None
    return replace(first, items=items, overall=whole)


def _mean_item(sides: Sequence[TierResults], items: Sequence[Item]) -> Item:
    nats = [one for one in items if isinstance(one, NatsItem)]
    if nats:
        return replace(
            nats[0],
            values=_mean_nats(nats),
            blocks=_of_all([one.blocks for one in nats], lambda all: _mean_blocks(sides, all)),
        )
    return _mean_credit_item(sides, [one for one in items if isinstance(one, CreditItem)])


def _mean_credit_item(sides: Sequence[TierResults], items: Sequence[CreditItem]) -> CreditItem:
    metrics = [name for name in items[0].credits if all(name in one.credits for one in items)]
    return replace(
        items[0],
        values=_mean_values([one.values for one in items]),
        credits={
            name: _mean_credits(sides, [one.credits[name] for one in items]) for name in metrics
        },
        companions=_of_all(
            [one.companions for one in items], lambda all: _mean_companions(sides, all)
        ),
    )


def _of_all(parts: Sequence[Part | None], mean: Callable[[list[Part]], Part]) -> Part | None:
    known = [part for part in parts if part is not None]
    return mean(known) if len(known) == len(parts) else None


def _mean_values(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = [name for name in values[0] if all(name in one for one in values)]
    return {name: math.fsum(one[name] for one in values) / len(values) for name in names}


def _mean_nats(items: Sequence[NatsItem]) -> dict[str, float]:
    """The perplexity is that of the mean nats per token, as everywhere."""
    values = _mean_values([one.values for one in items])
    return {**values, "ppl": math.exp(values["nats_per_token"])}


def _mean_blocks(sides: Sequence[TierResults], blocks: Sequence[Blocks]) -> Blocks:
    _check(sides, [one.ids.tolist() for one in blocks])
    return replace(blocks[0], nats=np.mean([one.nats for one in blocks], axis=0))


def _mean_credits(sides: Sequence[TierResults], credits: Sequence[Credits]) -> Credits:
    """Of the units that could be judged at every checkpoint."""
    kept = [reduce(Credits.without, credits, one) for one in credits]
    _check(sides, [one.ids for one in kept])
    return replace(kept[0], credit=np.mean([one.credit for one in kept], axis=0))


def _mean_companions(sides: Sequence[TierResults], all: Sequence[Companions]) -> Companions:
    _check(sides, [one.ids for one in all])
    values = {name: np.mean([one.values[name] for one in all], axis=0) for name in all[0].values}
    return replace(all[0], values=values)


def _check(sides: Sequence[TierResults], ids: Sequence[object]) -> None:
    for side, own in zip(sides, ids, strict=True):
        if own != ids[0]:
            raise ResultsError(
                f"{side.folder}: its {side.tier.unit} are not those of {sides[0].folder}, so there is "
                "no mean over both; score the checkpoint again"
            )
