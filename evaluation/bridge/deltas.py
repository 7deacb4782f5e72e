"""Deltas of one checkpoint against another over the same items.

    nats     a delta of each metric for each item, such as delta_nats_per_token
    credit   the headline for each item, by the suite's primary metric, and by others; secondary
             metrics for each item; of items of which only the right answer is scored, its bits per
             byte are the headline
    rates    every rate over all units, the headline for each category

`settings.tiers` lists the tiers with their kinds and metrics. `overall` is the unweighted mean over
items, and all units for rates. With one tokenizer, equal nats, equal perplexity and equal bits per byte
are one hypothesis, tested on the nats. Holm's correction is over the `primary` deltas of all tiers: the
headline of each item, and the rates. An overall delta is tested without correction.

Nats per token and perplexities of two tokenizers have different units. What can be compared are bits
per byte, and the credit of questions and answers. A slice's blocks hold different stretches of its text
in each tokenizer, so they cannot be paired: the two bits per byte count as those of two samples of one
text, and their variances add up. Both samples largely overlap, so the interval is too wide rather than
too narrow.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.delta import OVERALL, Delta, corrected, delta_of
from evaluation.bridge.estimate import Estimate, exponential, scaled, unknown, unpaired
from evaluation.bridge.means import means
from evaluation.bridge.paired import estimate_of, level_of, paired_of
from evaluation.bridge.pairing import AGAIN, Pair, tier_pairs
from evaluation.errors import BridgeError
from evaluation.metrics.layout import Grouping, numbered
from evaluation.results.kinds import Item
from evaluation.results.read import Results
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import Tier

_NO_TABLE = "no interval: an external command gave no per-item scores"


def compare(ours: Results, theirs: Results, *, across_tokenizers: bool = False) -> list[Delta]:
    """Return all deltas of one checkpoint against another, with their flags.

    Args:
        across_tokenizers: Whether tokenizers may differ. This leaves out metrics per token; bits
            per byte take the place of nats per token in the family of tests.

    Raises:
        BridgeError: The two must not be compared.
    """
    check_comparable(ours, theirs, across_tokenizers=across_tokenizers)
    pairs = tier_pairs(ours, theirs)
    return corrected([delta for pair in pairs for delta in _of_tier(pair, across_tokenizers)])


def _of_tier(pair: Pair, across: bool) -> Iterator[Delta]:
    """Yield the deltas of one tier, none of them corrected: of each metric, for items and their means."""
    is_unpaired = across and pair.tier.kind == "nats"
    rows = list(_unpaired(pair) if is_unpaired else _paired(pair))
    deltas = rows if pair.tier.rates else [*rows, *means(pair, rows)]
    yield from (delta for delta in deltas if not across or delta.definition.is_free_of_tokens)


def groups_of(items: Mapping[str, Item]) -> dict[str, Grouping]:
    """Return the groups of the items' units, numbered across items."""
    layouts = {name: item.units.layout for name, item in items.items() if item.units is not None}
    return dict(zip(layouts, numbered(tuple(layouts.values())), strict=True))


def _paired(pair: Pair) -> Iterator[Delta]:
    groups = groups_of(pair.theirs.items)
    overall = pair.ours.overall, pair.theirs.overall
    if pair.tier.rates and overall[0] is not None and overall[1] is not None:
        own = None if overall[1].units is None else overall[1].units.layout.groups
        yield from _of_item(pair, OVERALL, *overall, own)  # type: ignore[arg-type]
    for name, mine, other in pair.both:
        yield from _of_item(pair, name, mine, other, groups.get(name))


def _of_item(
    pair: Pair, name: str, mine: Item, other: Item, groups: Grouping | None
) -> Iterator[Delta]:
    """Yield a delta for each metric, with the stored value where there is one, else its units' own.

    A metric with the numerator of an earlier one follows from its difference: with one tokenizer, both are
    one hypothesis.
    """
    _check_units(pair, name, mine, other)
    headline, same = pair.tier.headline_of(mine.values), _is_same(pair, mine, other)
    estimates: dict[str, Estimate] = {}
    for metric in _compared(pair.tier, name, mine, other):
        values = _value(pair, name, metric.name, mine), _value(pair, name, metric.name, other)
        base = estimates.get(pair.tier.base_of(metric).name)
        paired = None if groups is None else paired_of(mine, other, metric, groups)
        if paired is None:
            estimate = unknown(values[0] - values[1], n=0, units=0, note=_NO_TABLE)
        elif base is None or base.paired is None or base.paired.weights is None:
            estimate = estimate_of(paired, same=same)
        elif metric.link == "exp":
            estimate = exponential(base, values[1])
        else:
            assert paired.weights is not None
            estimate = scaled(base, float(base.paired.weights.sum() / paired.weights.sum()))
        estimates[metric.name] = estimate
        yield delta_of(pair.tier, name, mine.group, metric.name, values, estimate, headline)


def _compared(tier: Tier, name: str, mine: Item, other: Item) -> Iterable[Metric]:
    """Return the metrics that are compared; those that only one side's version stored are left out."""
    if tier.kind == "nats":
        return (m for m in tier.headline_first if m.name in mine.values and m.name in other.values)
    if tier.rates and name == OVERALL:
        return (tier.metric(name) for name in mine.values if name in other.values)
    if not mine.measured or not other.measured:
        return map(tier.metric, mine.values)
    metrics = map(tier.metric, mine.measured)
    return (
        metric for metric in metrics if not metric.is_secondary or metric.name in other.measured
    )


def _value(pair: Pair, name: str, metric: str, item: Item) -> float:
    if metric in item.values:
        return item.values[metric]
    if metric in item.measured:
        return item.measured[metric].value
    raise BridgeError(
        f"{metric} of {name!r}: {pair.theirs.folder} has none, which {pair.ours.folder} has; {AGAIN}"
    )


def _check_units(pair: Pair, name: str, mine: Item, other: Item) -> None:
    left, right = mine.units, other.units
    if left is None or right is None:
        return
    pair.check_ids(name, left.ids, right.ids)
    for column in ("tokens", "bytes"):
        if column in left.sums and (left.sums[column] != right.sums[column]).any():
            raise BridgeError(
                f"{pair.tier.unit} of {name!r}: {pair.ours.folder} and {pair.theirs.folder} scored "
                f"different numbers of tokens or bytes in the same {pair.tier.unit}; score both sides again"
            )


def _is_same(pair: Pair, mine: Item, other: Item) -> bool:
    """Return whether both sides are the same: in all measures of all questions, or in their checkpoint."""
    secondary = [metric.name for metric in pair.tier.secondary if metric.name in mine.measured]
    if secondary and other.measured and pair.tier.companion is not None:
        return all(
            name in other.measured
            and np.array_equal(mine.measured[name].amounts, other.measured[name].amounts)
            for name in secondary
        )
    return pair.ours.file.checkpoint_identity == pair.theirs.file.checkpoint_identity


def _unpaired(pair: Pair) -> Iterator[Delta]:
    """Yield the deltas of metrics that need no common tokenizer; the first one is that of the tests."""
    metrics = [metric for metric in pair.tier.headline_first if metric.is_free_of_tokens]
    for name, mine, other in pair.both:
        for number, metric in enumerate(metrics):
            if metric.name not in mine.values or metric.name not in other.values:
                raise BridgeError(
                    f"{pair.tier.item} {name!r}: {pair.ours.folder} and {pair.theirs.folder} have other "
                    f"tokenizers, and not both have its {metric.words}; {AGAIN}"
                )
            values = mine.values[metric.name], other.values[metric.name]
            sides = [_level(item, metric) for item in (mine, other)]
            estimate = unknown(values[0] - values[1], n=0, units=0, note=_NO_TABLE)
            if sides[0] is not None and sides[1] is not None:
                estimate = unpaired(sides[0], sides[1])
            delta = delta_of(pair.tier, name, mine.group, metric.name, values, estimate)
            yield replace(delta, primary=number == 0)


def _level(item: Item, metric: Metric) -> Estimate | None:
    if item.units is None or metric.name not in item.measured:
        return None
    return level_of(item.measured[metric.name], item.units.layout.groups, is_share=False)
