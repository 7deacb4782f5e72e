"""The mean over the last checkpoints of a stage, next to the last one.

One checkpoint is a draw: the next one, a few steps later, answers otherwise. The mean over the last k
is paired with the bridge item by item (each item's mean over the k), and its interval counts both what
other items and what other checkpoints would give. Items and checkpoints are crossed, so with

    V_items    variance of the mean by the items' own means, as of any paired difference
    V_steps    s^2 / k, of the k checkpoints' deltas
    V_both     sum_i s_i^2 / k, what single items flicker by between checkpoints, which is in both

the variance is V_items + max(0, V_steps - V_both): the two-way random effects model (Searle, Casella
and McCulloch, Variance Components, 1992). The second part has only k - 1 degrees of freedom, so each
part keeps a quantile of its own: the interval reaches sqrt(a^2 + b^2) to each side, a to the end of the
items' interval, b = t_(k-1) times the root of the second part (Graybill and Wang, JASA 75, 1980). A
trend over the k counts as variation, so intervals are rather too wide than too narrow.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import numpy as np

from evaluation.bridge.delta import Delta
from evaluation.bridge.simultaneous_intervals import leaves
from evaluation.bridge.statistics import ALPHA, Estimate, quantile
from evaluation.bridge.verdicts import answer_of, decisive_deltas, gain_interval
from evaluation.errors import ResultsError
from evaluation.metrics.spread import Floats
from evaluation.results.kinds import Blocks, Companions, CreditItem, Credits, Item, NatsItem
from evaluation.results.read import Results, TierResults
from evaluation.results.stage_files import AverageRow
from evaluation.settings.objectives import Objective

Part = TypeVar("Part")


def average_objective(
    objective: Objective, key: str, mean: Sequence[Delta], deltas: Mapping[int, Sequence[Delta]]
) -> AverageRow:
    """Return how the mean stands to an objective.

    `mean` are the deltas of the items' means over the steps, `deltas` those of each step.
    """
    headline = decisive_deltas(objective, mean, key)[1]
    single = [decisive_deltas(objective, own, key)[1] for own in deltas.values()]
    between = checkpoint_variance([one.estimate for one in single], single[0].item)
    known = with_checkpoints(headline.estimate, between, len(single))
    answer = answer_of(objective, *gain_interval(headline.sign, known))
    group = f" {objective.group}" if objective.group else ""
    return AverageRow(
        tier=objective.tier,
        group=objective.group,
        metric=headline.metric,
        steps=tuple(deltas),
        delta=known.value,
        low=known.low,
        high=known.high,
        se_items=headline.estimate.se,
        se_checkpoints=None if between is None else math.sqrt(between),
        verdict=answer,
        sentence=f"{objective.tier}{group} by the mean of the last {len(single)} checkpoints: "
        f"{headline.definition.words} {_change(headline, known)}: {answer} "
        f"(the last one alone {_change(headline, single[-1].estimate)})",
    )


def _change(delta: Delta, known: Estimate) -> str:
    change = delta.definition.change(known.value, known.low, known.high)
    return f"{change}, no interval" if known.low is None else change


def checkpoint_variance(estimates: Sequence[Estimate], name: str) -> float | None:
    """Return max(0, V_steps - V_both) of the mean over checkpoints; None where items are not known."""
    count = len(estimates)
    found = [leaves(estimate, name) for estimate in estimates]
    flicker = 0.0
    for leaf in found[0]:
        rows = []
        for one in found:
            weight, spread = one.get(leaf, (0.0, None))
            if spread is None:
                return None
            rows.append(weight * spread.independent)
        if len({len(row) for row in rows}) > 1:
            return None
        flicker += float(np.stack(rows).var(axis=0, ddof=1).sum())
    between = float(np.var([estimate.value for estimate in estimates], ddof=1))
    return max(0.0, between - flicker) / count


def with_checkpoints(estimate: Estimate, between: float | None, count: int) -> Estimate:
    """Return an estimate whose interval counts the variation between `count` checkpoints, too."""
    if estimate.se is None or estimate.low is None or estimate.high is None or not between:
        return estimate
    reach = quantile(1 - ALPHA / 2, count - 1) * math.sqrt(between)
    return replace(
        estimate,
        se=math.sqrt(estimate.se**2 + between),
        low=estimate.value - math.hypot(estimate.value - estimate.low, reach),
        high=estimate.value + math.hypot(estimate.high - estimate.value, reach),
        p=None,
        mde=None,
        counts=None,
        method=f"{estimate.method}, over {count} checkpoints",
    )


def mean_results(sides: Sequence[Results]) -> Results:
    """Return the checkpoints as one, whose items have their means over them.

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
    overall = _if_all(
        [side.overall for side in sides], lambda known: _mean_credit_item(sides, known)
    )
    return replace(first, items=items, overall=overall)


def _mean_item(sides: Sequence[TierResults], items: Sequence[Item]) -> Item:
    nats = [one for one in items if isinstance(one, NatsItem)]
    if not nats:
        return _mean_credit_item(sides, [one for one in items if isinstance(one, CreditItem)])
    values = _mean_values([one.values for one in nats])
    blocks = _if_all([one.blocks for one in nats], lambda known: _mean_blocks(sides, known))
    # The perplexity is that of the mean nats per token, as everywhere.
    return replace(
        nats[0], values={**values, "ppl": math.exp(values["nats_per_token"])}, blocks=blocks
    )


def _mean_credit_item(sides: Sequence[TierResults], items: Sequence[CreditItem]) -> CreditItem:
    credits = {
        name: _mean_credits(sides, [one.credits[name] for one in items])
        for name in items[0].credits
        if all(name in one.credits for one in items)
    }
    companions = _if_all(
        [one.companions for one in items], lambda known: _mean_companions(sides, known)
    )
    values = _mean_values([one.values for one in items])
    return replace(items[0], values=values, credits=credits, companions=companions)


def _if_all(parts: Sequence[Part | None], mean: Callable[[list[Part]], Part]) -> Part | None:
    known = [part for part in parts if part is not None]
    return mean(known) if len(known) == len(parts) else None


def _mean_values(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = [name for name in values[0] if all(name in one for one in values)]
    return {name: math.fsum(one[name] for one in values) / len(values) for name in names}


def _mean_blocks(sides: Sequence[TierResults], blocks: Sequence[Blocks]) -> Blocks:
    return replace(blocks[0], nats=_mean(sides, [(one.ids, one.nats) for one in blocks]))


def _mean_credits(sides: Sequence[TierResults], credits: Sequence[Credits]) -> Credits:
    """Return the means of the units that could be judged at every checkpoint."""
    kept = [reduce(Credits.without, credits, one) for one in credits]
    return replace(kept[0], credit=_mean(sides, [(one.ids, one.credit) for one in kept]))


def _mean_companions(sides: Sequence[TierResults], known: Sequence[Companions]) -> Companions:
    values = {
        name: _mean(sides, [(one.ids, one.values[name]) for one in known])
        for name in known[0].values
    }
    return replace(known[0], values=values)


def _mean(sides: Sequence[TierResults], units: Sequence[tuple[Iterable[object], Floats]]) -> Floats:
    """Return the mean of values of the same units; raise ResultsError where they are others."""
    ids = [list(own) for own, _ in units]
    for side, own in zip(sides, ids, strict=True):
        if own != ids[0]:
            raise ResultsError(
                f"{side.folder}: its {side.tier.unit} are not those of {sides[0].folder}, so there is "
                "no mean over both; score the checkpoint again"
            )
    mean: Floats = np.mean([values for _, values in units], axis=0)
    return mean
