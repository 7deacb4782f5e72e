"""Deltas of one checkpoint against another over the same items.

    nats     delta_nats_per_token, delta_ppl, delta_bits_per_byte for each item       want <= 0
    credit   the headline for each item, by the suite's primary metric, and by others want >= 0
             companions of the headline for each item, see `companions`
    rates    every rate over all units, the headline for each category                want >= 0
             (but for rates of which less is better)

What tiers there are, of which kind and with which metrics says `settings.tiers`. `overall` is the
unweighted mean over items, and all units for rates. With one tokenizer, equal nats, equal
perplexity and equal bits per byte are one hypothesis, tested on the nats. Holm's correction is over
the `primary` deltas of all tiers: the headline of each item, and the rates. An overall delta is one
number and is tested as it is; its items are taken for independent samples, so they should not share
documents (see `skip_documents` of a slice).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evaluation.bridge.delta import NO_TABLE, Pair, delta_of, no_table
from evaluation.bridge.delta import OVERALL as OVERALL
from evaluation.bridge.delta import Delta as Delta
from evaluation.bridge.delta import headline_delta as headline_delta
from evaluation.bridge.delta import macro as macro
from evaluation.bridge.discordance import paired_rate
from evaluation.bridge.levels import detectable
from evaluation.bridge.nats import paired_perplexity, paired_ratio
from evaluation.bridge.pairing import AGAIN, check_comparable
from evaluation.bridge.statistics import (
    ALPHA,
    Estimate,
    holm,
    identical,
    macro_mean,
    paired_companion,
    tested_by,
    unknown,
)
from evaluation.errors import BridgeError
from evaluation.results.kinds import Blocks, CreditItem, Credits, NatsItem
from evaluation.results.read import Results
from evaluation.settings.tiers import TIERS, Tier


def compare(ours: Results, theirs: Results) -> list[Delta]:
    """All deltas of `ours` against `theirs`; raises BridgeError where they must not be compared."""
    check_comparable(ours, theirs)
    pairs = [Pair(mine, theirs.tiers[name]) for name, mine in ours.tiers.items()]
    return corrected([delta for pair in pairs for delta in tier_deltas(pair)])


def corrected(deltas: Sequence[Delta]) -> list[Delta]:
    """Holm's correction over the primary deltas, and what each delta is by it."""
    adjusted = holm({f"{d.tier} {d.item} {d.metric}": d.estimate.p for d in deltas if d.primary})
    tests = sum(p is not None for p in adjusted.values())
    return [_flagged(_as_one_of(delta, tests), adjusted) for delta in deltas]


def _as_one_of(delta: Delta, tests: int) -> Delta:
    """What a primary delta could detect as one of so many tests."""
    if not delta.primary or delta.estimate.p is None:
        return delta
    mde = detectable(delta.estimate, ALPHA / tests)
    return replace(delta, estimate=replace(delta.estimate, mde=mde))


def tier_deltas(pair: Pair) -> list[Delta]:
    """The deltas of one tier, none of them corrected."""
    if pair.tier.kind == "nats":
        return _nats(pair)
    return _rates(pair) if pair.tier.rates else _credits(pair)


def _flagged(delta: Delta, adjusted: dict[str, float | None]) -> Delta:
    """Flags what is of a family of tests, and overall values; companions are of none."""
    if delta.is_companion:
        return delta
    is_nats = TIERS[delta.tier].kind == "nats" and not delta.primary
    metric = headline_delta(delta.tier) if is_nats else delta.metric
    p_holm = adjusted.get(f"{delta.tier} {delta.item} {metric}")
    if p_holm is None and delta.item != OVERALL:
        return delta
    p = p_holm if p_holm is not None else delta.estimate.p
    if p is None or p >= ALPHA:
        return replace(delta, p_holm=p_holm, flag="unclear")
    is_gain = delta.estimate.value * delta.sign > 0
    return replace(delta, p_holm=p_holm, flag="better" if is_gain else "worse")


def _nats(pair: Pair) -> list[Delta]:
    both = {
        name: (mine, pair.theirs.items[name])
        for name, mine in pair.ours.items.items()
        if isinstance(mine, NatsItem)
    }
    known = {n: (a, b) for n, (a, b) in both.items() if isinstance(b, NatsItem)}
    rows = [delta for name, items in known.items() for delta in _nats_item(pair, name, *items)]
    return [*rows, *_nats_overall(pair, known, rows)]


def _nats_item(pair: Pair, name: str, mine: NatsItem, other: NatsItem) -> Iterator[Delta]:
    estimates: dict[str, Estimate] = {}
    if mine.blocks is not None and other.blocks is not None:
        _check_blocks(pair, name, mine.blocks, other.blocks)
        estimates = _nats_estimates(mine.blocks, other.blocks)
    for metric in _headline_first(pair.tier):
        if metric in mine.values and metric in other.values:
            values = mine.values[metric], other.values[metric]
            known = estimates.get(metric, no_table(values))
            yield delta_of(pair.tier, name, mine.group, metric, values, known)


def _headline_first(tier: Tier) -> list[str]:
    names = [metric.name for metric in tier.metrics]
    return sorted(names, key=lambda name: name != tier.headline)


def _check_blocks(pair: Pair, name: str, mine: Blocks, other: Blocks) -> None:
    pair.check(name, mine.ids.tolist(), other.ids.tolist())
    if (mine.tokens != other.tokens).any() or (mine.bytes != other.bytes).any():
        raise BridgeError(
            f"{pair.tier.unit} of {name!r}: {pair.ours.folder} and {pair.theirs.folder} scored "
            "different numbers of tokens or bytes in the same blocks; score both sides again"
        )


def _nats_estimates(mine: Blocks, other: Blocks) -> dict[str, Estimate]:
    """By the metrics that a tier of nats may have."""
    nats = paired_ratio(mine.nats, other.nats, mine.tokens)
    ppl = paired_perplexity(mine.nats, other.nats, mine.tokens)
    estimates = {"nats_per_token": nats, "ppl": tested_by(ppl, nats)}
    if mine.bytes.sum() > 0:
        per_byte = paired_ratio(mine.nats, other.nats, mine.bytes * math.log(2))
        estimates["bits_per_byte"] = tested_by(per_byte, nats)
    return estimates


def _nats_overall(
    pair: Pair, items: dict[str, tuple[NatsItem, NatsItem]], rows: list[Delta]
) -> list[Delta]:
    """Mean over items; the overall perplexity is exp of the mean nats per token."""
    overall = {}
    for metric in _headline_first(pair.tier):
        same = [row for row in rows if row.metric == f"delta_{metric}"]
        if len(same) == len(items):
            overall[metric] = macro(same)
    if "ppl" in overall:
        overall["ppl"] = _overall_perplexity(pair.tier, items, overall["nats_per_token"])
    return list(overall.values())


def _overall_perplexity(
    tier: Tier, items: dict[str, tuple[NatsItem, NatsItem]], nats: Delta
) -> Delta:
    scales = math.exp(nats.value), math.exp(nats.bridge_value)
    parts: dict[str, Estimate] = {}
    for name, (mine, other) in items.items():
        blocks, others = mine.blocks, other.blocks
        if blocks is None or others is None:
            parts[name] = unknown(0.0, n=0, units=0, note=NO_TABLE)
            continue
        parts[name] = paired_perplexity(blocks.nats, others.nats, blocks.tokens, scales)
    estimate = tested_by(macro_mean(parts, scales[0] - scales[1]), nats.estimate)
    return delta_of(tier, OVERALL, None, "ppl", scales, estimate)


def _credits(pair: Pair) -> list[Delta]:
    rows = [
        delta
        for name, mine in pair.ours.items.items()
        for delta in _credit_item(pair, name, mine, pair.theirs.items[name])
    ]
    primary = [row for row in rows if row.primary]
    return [*rows, macro(primary), *_companions(pair)] if primary else []


def _companions(pair: Pair) -> list[Delta]:
    """Of each item that has them on both sides, then their means over the items."""
    rows = [
        delta
        for name, mine in pair.ours.items.items()
        for delta in _companion_item(pair, name, mine, pair.theirs.items[name])
    ]
    found = []
    for metric in pair.tier.companions:
        own = [row for row in rows if row.metric == f"delta_{metric.name}"]
        found += [macro(own)] if len(own) == len(pair.ours.items) else []
    return [*rows, *found]


def _companion_item(pair: Pair, name: str, mine: object, other: object) -> Iterator[Delta]:
    if not isinstance(mine, CreditItem) or not isinstance(other, CreditItem):
        return
    left, right = mine.companions, other.companions
    if left is None or right is None:
        return
    pair.check(name, list(left.ids), list(right.ids))
    for metric, ours in left.values.items():
        theirs = right.values[metric]
        values = float(ours.mean()), float(theirs.mean())
        known = paired_companion(ours, theirs, left.clusters, left.strata)
        yield delta_of(pair.tier, name, mine.group, metric, values, known)


def _credit_item(pair: Pair, name: str, mine: object, other: object) -> Iterator[Delta]:
    """The headline by its stored values, the other metrics by their units."""
    if not isinstance(mine, CreditItem) or not isinstance(other, CreditItem):
        return
    for metric in mine.credits if other.credits and mine.credits else mine.values:
        known = _credit_estimate(pair, name, metric, mine, other)
        values = _value(mine, metric), _value(other, metric)
        if values[0] is None or values[1] is None:
            raise BridgeError(
                f"{metric} of {name!r}: {pair.theirs.folder} has none, which {pair.ours.folder} has; "
                f"{AGAIN}"
            )
        both = values[0], values[1]
        yield delta_of(pair.tier, name, mine.group, metric, both, known or no_table(both))


def _value(item: CreditItem, metric: str) -> float | None:
    if metric in item.values:
        return item.values[metric]
    return float(item.credits[metric].credit.mean()) if metric in item.credits else None


def _credit_estimate(
    pair: Pair, what: str, metric: str, mine: CreditItem, other: CreditItem
) -> Estimate | None:
    """None where an external command gave no units."""
    left, right = mine.credits.get(metric), other.credits.get(metric)
    if (left is None or right is None) and (
        pair.ours.file.is_external or pair.theirs.file.is_external
    ):
        return None
    if left is not None and right is not None:
        left, right = left.without(right), right.without(left)
    pair.check(what, list(left.ids) if left else [], list(right.ids) if right else [])
    if left is None or right is None or not left.ids:
        return None
    if np.array_equal(left.credit, right.credit) and _is_same(pair, mine, other):
        return _over_all(identical(n=len(left.ids)), left)
    return _over_all(paired_rate(left.credit, right.credit, left.clusters, left.strata), left)


def _is_same(pair: Pair, mine: CreditItem, other: CreditItem) -> bool:
    """Whether credits are equal because all is: every measure of every question, or the checkpoint."""
    ours, theirs = mine.companions, other.companions
    if ours is not None and theirs is not None:
        return ours.ids == theirs.ids and all(
            np.array_equal(values, theirs.values[metric]) for metric, values in ours.values.items()
        )
    identity = pair.ours.file.checkpoint_identity
    return identity is not None and identity == pair.theirs.file.checkpoint_identity


def _over_all(estimate: Estimate, credits: Credits) -> Estimate:
    """Steps may lack different items; their spreads are compared item by item."""
    if estimate.spread is None:
        return estimate
    independent = credits.over_all(estimate.spread.independent)
    return replace(estimate, spread=estimate.spread._replace(independent=independent))


def _rates(pair: Pair) -> list[Delta]:
    rows = []
    mine, other = pair.ours.overall, pair.theirs.overall
    if mine is not None and other is not None:
        names = [metric.name for metric in pair.tier.metrics]
        for rate in mine.values:
            if rate in names and rate in other.values:
                values = mine.values[rate], other.values[rate]
                known = _credit_estimate(pair, rate, rate, mine, other) or no_table(values)
                rows.append(delta_of(pair.tier, OVERALL, None, rate, values, known))
    for name, item in pair.ours.items.items():
        if name in pair.theirs.items:
            rows += _credit_item(pair, name, item, pair.theirs.items[name])
    return rows
