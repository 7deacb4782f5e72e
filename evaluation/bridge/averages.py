"""The mean over the last checkpoints of a stage, beside the last one.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evaluation.bridge.aims import aimed_at
from evaluation.bridge.deltas import Delta
from evaluation.bridge.simultaneous import leaves
from evaluation.bridge.statistics import ALPHA, Estimate, quantile
from evaluation.bridge.verdicts import answer_of
from evaluation.settings.config import Aim


@dataclass(frozen=True, kw_only=True)
class Average:
    """An aim by the mean over `steps`; the standard errors say which part of the interval is whose."""

    tier: str
    group: str | None
    metric: str
    steps: tuple[int, ...]
    delta: float
    low: float | None
    high: float | None
    se_items: float | None
    se_checkpoints: float | None
    verdict: Literal["met", "not met", "undecided"]
    sentence: str


def average_aim(
    aim: Aim, key: str, mean: Sequence[Delta], deltas: Mapping[int, Sequence[Delta]]
) -> Average:
    """`mean` are the deltas of the items' means over the steps, `deltas` those of each step."""
    headline = aimed_at(aim, mean, key)[1]
    single = [aimed_at(aim, own, key)[1] for own in deltas.values()]
    between = checkpoint_variance([one.estimate for one in single], single[0].item)
    known = with_checkpoints(headline.estimate, between, len(single))
    gains = known.low, known.high
    if headline.sign < 0 and known.low is not None and known.high is not None:
        gains = -known.high, -known.low
    answer = answer_of(aim, *gains)
    return Average(
        tier=aim.tier,
        group=aim.group,
        metric=headline.metric,
        steps=tuple(deltas),
        delta=known.value,
        low=known.low,
        high=known.high,
        se_items=headline.estimate.se,
        se_checkpoints=None if between is None else math.sqrt(between),
        verdict=answer,
        sentence=_sentence(aim, headline.metric, known, single[-1].estimate, len(single), answer),
    )


def checkpoint_variance(estimates: Sequence[Estimate], name: str) -> float | None:
    """max(0, V_steps - V_both) of the mean over checkpoints; None where items are not known."""
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
    """The estimate whose interval counts the variation between `count` checkpoints, too."""
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


def _sentence(
    aim: Aim, metric: str, mean: Estimate, last: Estimate, count: int, answer: str
) -> str:
    group = f" {aim.group}" if aim.group else ""
    return (
        f"{aim.tier}{group} by the mean of the last {count} checkpoints: "
        f"{metric} {_told(mean)}: {answer} (the last one alone {_told(last)})"
    )


def _told(known: Estimate) -> str:
    if known.low is None or known.high is None:
        return f"{known.value:+.4f}, no interval"
    return f"{known.value:+.4f} [{known.low:+.4f}, {known.high:+.4f}]"
