"""Deltas of one checkpoint against another over the same items.

    tier2   delta_nats_per_token, delta_ppl, delta_bits_per_byte for each slice       want <= 0
    tier3   delta_acc by the suite's primary metric for each task, and by the others  want >= 0
    tier4   delta_<rate> for each rate, delta_all_checks_pass_rate for each category  want >= 0
            (delta_truncated_rate: want <= 0)

`overall` is the unweighted mean over slices or tasks, and all prompts for Tier4. With one
tokenizer, equal nats, equal perplexity and equal bits per byte are one hypothesis, tested on the
nats. Holm's correction is over the `primary` deltas of all tiers: one for each slice and task, and
Tier4's rates. An overall delta is one number and is tested as it is; its slices and tasks are taken
for independent samples, so they should not share documents (see `skip_documents` of a slice).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from evaluation.bridge.discordance import paired_rate
from evaluation.bridge.outcomes import as_credit, item_credits, prompt_outcome
from evaluation.bridge.pairing import check_comparable, check_items
from evaluation.bridge.results import Blocks, Results, SliceResult, TaskResult
from evaluation.bridge.statistics import (
    ALPHA,
    Estimate,
    holm,
    macro_mean,
    paired_perplexity,
    paired_ratio,
    unknown,
)
from evaluation.errors import BridgeError
from evaluation.grading.rates import RATES, TRUNCATED
from evaluation.settings.tiers import TierName

OVERALL = "overall"
HEADLINES: dict[TierName, str] = {
    "tier2": "delta_nats_per_token",
    "tier3": "delta_acc",
    "tier4": "delta_all_checks_pass_rate",
}
"""The metric of each tier that objectives are decided on."""

Flag = Literal["better", "worse", "unclear"]
NO_TABLE = "no interval: an external command gave no per-item scores"


@dataclass(frozen=True, kw_only=True)
class Delta:
    """One metric of one item: both values, and what is known of their difference."""

    tier: TierName
    item: str
    group: str | None
    metric: str
    value: float
    bridge_value: float
    estimate: Estimate
    want: Literal["<= 0", ">= 0"]
    primary: bool
    p_holm: float | None = None
    flag: Flag | None = None

    @property
    def sign(self) -> int:
        """1 if more is better."""
        return 1 if self.want == ">= 0" else -1


def compare(ours: Results, theirs: Results) -> list[Delta]:
    """All deltas of `ours` against `theirs`; raises BridgeError where they must not be compared."""
    check_comparable(ours, theirs)
    deltas = [*_tier2(ours, theirs), *_tier3(ours, theirs), *_tier4(ours, theirs)]
    adjusted = holm({f"{d.tier} {d.item} {d.metric}": d.estimate.p for d in deltas if d.primary})
    return [_flagged(delta, adjusted) for delta in deltas]


def _flagged(delta: Delta, adjusted: dict[str, float | None]) -> Delta:
    metric = HEADLINES["tier2"] if delta.tier == "tier2" else delta.metric
    p_holm = adjusted.get(f"{delta.tier} {delta.item} {metric}")
    if p_holm is None and delta.item != OVERALL:
        return delta
    p = p_holm if p_holm is not None else delta.estimate.p
    if p is None or p >= ALPHA:
        return replace(delta, p_holm=p_holm, flag="unclear")
    is_gain = delta.estimate.value * delta.sign > 0
    return replace(delta, p_holm=p_holm, flag="better" if is_gain else "worse")


def _tier2(ours: Results, theirs: Results) -> Iterable[Delta]:
    if not ours.slices:
        return []
    pairs = {
        name: _paired_slice(name, ours, theirs, mine, theirs.slices[name])
        for name, mine in ours.slices.items()
    }
    rows = [delta for group in pairs.values() for delta in group]
    return [*rows, *_tier2_overall(ours, theirs, rows)]


def _paired_slice(
    name: str, ours: Results, theirs: Results, mine: SliceResult, other: SliceResult
) -> list[Delta]:
    if mine.blocks is None or other.blocks is None:
        estimates: dict[str, Estimate] = {}
    else:
        _check_blocks(name, ours, theirs, mine.blocks, other.blocks)
        estimates = _slice_estimates(mine.blocks, other.blocks)
    rows: list[Delta] = []
    for metric in ("nats_per_token", "ppl", "bits_per_byte"):
        values = getattr(mine, metric), getattr(other, metric)
        if values[0] is None or values[1] is None:
            continue
        difference = values[0] - values[1]
        known = estimates.get(metric, unknown(difference, n=0, units=0, note=NO_TABLE))
        rows.append(_delta("tier2", name, mine.group, metric, values, known))
    return rows


def _check_blocks(name: str, ours: Results, theirs: Results, mine: Blocks, other: Blocks) -> None:
    check_items(f"blocks of {name!r}", mine.block.tolist(), other.block.tolist(), ours, theirs)
    if (mine.tokens != other.tokens).any() or (mine.bytes != other.bytes).any():
        raise BridgeError(
            f"blocks of {name!r}: {ours.folder} and {theirs.folder} scored different numbers of "
            "tokens or bytes in the same blocks; score both sides again"
        )


def _slice_estimates(mine: Blocks, other: Blocks) -> dict[str, Estimate]:
    nats = paired_ratio(mine.nats, other.nats, mine.tokens)
    estimates = {"nats_per_token": nats}
    estimates["ppl"] = replace(paired_perplexity(mine.nats, other.nats, mine.tokens), p=nats.p)
    if mine.bytes.sum() > 0:
        per_byte = paired_ratio(mine.nats, other.nats, mine.bytes * math.log(2))
        estimates["bits_per_byte"] = replace(per_byte, p=nats.p)
    return estimates


def _tier2_overall(ours: Results, theirs: Results, rows: list[Delta]) -> list[Delta]:
    """Mean over slices; the overall perplexity is exp of the mean nats per token."""
    overall = []
    for metric in ("nats_per_token", "bits_per_byte"):
        same = [row for row in rows if row.metric == f"delta_{metric}"]
        if len(same) == len(ours.slices):
            overall.append(macro(same))
    means = [overall[0].value, overall[0].bridge_value]
    scales = math.exp(means[0]), math.exp(means[1])
    parts: dict[str, Estimate] = {}
    for name, mine in ours.slices.items():
        blocks, others = mine.blocks, theirs.slices[name].blocks
        if blocks is None or others is None:
            parts[name] = unknown(0.0, n=0, units=0, note=NO_TABLE)
            continue
        parts[name] = paired_perplexity(blocks.nats, others.nats, blocks.tokens, scales)
    estimate = macro_mean(parts, scales[0] - scales[1])
    estimate = replace(estimate, p=overall[0].estimate.p)
    overall.insert(1, _delta("tier2", OVERALL, None, "ppl", scales, estimate))
    return overall


def _tier3(ours: Results, theirs: Results) -> Iterable[Delta]:
    rows = [
        delta
        for name, mine in ours.tasks.items()
        for delta in _paired_task(name, ours, theirs, mine, theirs.tasks[name])
    ]
    primary = [row for row in rows if row.primary]
    return [*rows, macro(primary)] if primary else []


def _paired_task(
    name: str, ours: Results, theirs: Results, mine: TaskResult, other: TaskResult
) -> list[Delta]:
    values = mine.accuracy, other.accuracy
    if mine.candidates is None or other.candidates is None:
        estimate = unknown(values[0] - values[1], n=0, units=0, note=NO_TABLE)
        return [_delta("tier3", name, mine.group, "acc", values, estimate)]
    left, right = item_credits(mine.candidates), item_credits(other.candidates)
    check_items(f"items of {name!r}", left.ids, right.ids, ours, theirs)
    rows: list[Delta] = []
    for metric, credit in left.credit.items():
        estimate = paired_rate(credit, right.credit[metric], left.clusters, left.strata)
        means = float(credit.mean()), float(right.credit[metric].mean())
        if metric == mine.primary:
            rows.insert(0, _delta("tier3", name, mine.group, "acc", values, estimate))
        else:
            rows.append(_delta("tier3", name, mine.group, f"acc_{metric}", means, estimate))
    return rows


def _tier4(ours: Results, theirs: Results) -> Iterable[Delta]:
    if ours.probes is None or theirs.probes is None:
        return []
    rows = []
    for rate in RATES:
        values = ours.probes.rates.get(rate), theirs.probes.rates.get(rate)
        if values[0] is None or values[1] is None:
            continue
        estimate = _paired_prompts(ours, theirs, rate, None)
        known = estimate or unknown(values[0] - values[1], n=0, units=0, note=NO_TABLE)
        rows.append(_delta("tier4", OVERALL, None, rate, (values[0], values[1]), known))
    for category in dict.fromkeys(prompt["category"] for prompt in ours.probes.prompts):
        rate = "all_checks_pass_rate"
        estimate = _paired_prompts(ours, theirs, rate, category)
        if estimate is not None:
            means = _rate(ours, rate, category), _rate(theirs, rate, category)
            rows.append(_delta("tier4", category, category, rate, means, estimate))
    return rows


def _prompt_outcomes(side: Results, rate: str, category: str | None) -> dict[str, bool]:
    prompts = side.probes.prompts if side.probes else ()
    path = side.headers["tier4"].path
    counted = {
        prompt["id"]: prompt_outcome(prompt, rate, path)
        for prompt in prompts
        if category is None or prompt["category"] == category
    }
    return {name: passed for name, passed in counted.items() if passed is not None}


def _rate(side: Results, rate: str, category: str | None) -> float:
    outcomes = _prompt_outcomes(side, rate, category)
    return sum(outcomes.values()) / len(outcomes)


def _paired_prompts(
    ours: Results, theirs: Results, rate: str, category: str | None
) -> Estimate | None:
    """None where an external command gave no prompts."""
    mine, other = (_prompt_outcomes(side, rate, category) for side in (ours, theirs))
    if (not mine or not other) and ours.headers["tier4"].is_external:
        return None
    check_items(f"prompts of {rate}", list(mine), list(other), ours, theirs)
    return paired_rate(as_credit(list(mine.values())), as_credit(list(other.values())))


def _delta(
    tier: TierName,
    item: str,
    group: str | None,
    metric: str,
    values: tuple[float, float],
    estimate: Estimate,
) -> Delta:
    name = f"delta_{metric}"
    is_lower_better = tier == "tier2" or metric == TRUNCATED
    is_primary = name == HEADLINES[tier] or (tier == "tier4" and item == OVERALL)
    return Delta(
        tier=tier,
        item=item,
        group=group,
        metric=name,
        value=values[0],
        bridge_value=values[1],
        estimate=estimate,
        want="<= 0" if is_lower_better else ">= 0",
        primary=is_primary and (item == OVERALL) == (tier == "tier4"),
    )


def macro(rows: list[Delta], item: str = OVERALL) -> Delta:
    """The unweighted mean of one metric over slices or tasks."""
    return replace(
        rows[0],
        item=item,
        group=None,
        value=math.fsum(row.value for row in rows) / len(rows),
        bridge_value=math.fsum(row.bridge_value for row in rows) / len(rows),
        estimate=macro_mean({row.item: row.estimate for row in rows}),
        primary=False,
        p_holm=None,
        flag=None,
    )
