"""Flag, p-value, interval and detectable effect of a delta say one thing, whatever the kind of scores."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.bridge.delta import corrected
from evaluation.bridge.deltas import estimates_of
from evaluation.bridge.estimate import ALPHA, Estimate
from evaluation.bridge.paired_binary import at_alpha, p_beyond, paired_rate
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import accuracy_delta
from tests.bridge.items import slice_of
from tests.bridge.paired import paired_mean, paired_measure

KINDS = ("pass or fail", "of 16 samples", "mean of 3", "ties", "measure", "nats")


def drawn(kind: str, n: int, shift: float, seed: int) -> tuple[Floats, Floats]:
    """Two sides that are much alike, as those of neighbouring checkpoints."""
    dice = np.random.default_rng(seed)
    chances = np.clip(dice.beta(0.5, 0.5, n), 0, 1)
    moved = np.clip(chances + shift * dice.exponential(1, n) * (dice.random(n) < 0.3), 0, 1)
    of = {"pass or fail": 1, "ties": 2, "of 16 samples": 16, "mean of 3": 3}.get(kind)
    if of:
        theirs = dice.binomial(of, chances) / of
        ours = np.where(dice.random(n) < 0.5, theirs, dice.binomial(of, moved) / of)
        return ours, theirs
    theirs = dice.gamma(2, 1, n)
    return theirs + shift * dice.lognormal(0, 1, n) - shift + dice.normal(0, 0.1, n), theirs


def estimates(kind: str, n: int, shift: float, seed: int) -> list[Estimate]:
    ours, theirs = drawn(kind, n, shift, seed)
    clusters = [str(i // 3) for i in range(n)]
    strata = [str(i % 2) for i in range(n)]
    if kind == "nats":
        dice = np.random.default_rng(seed)
        tokens = dice.integers(20, 64, n).astype(float)
        size = tokens * dice.uniform(3, 5, n)
        sides = [slice_of(nats=nats * tokens, tokens=tokens, bytes=size) for nats in (ours, theirs)]
        tier = TIERS["tier2"]
        return list(estimates_of(tier, tier.headline_first, *sides).values())
    independent = (None, None)
    if kind == "measure":
        all_groups = (independent, (clusters, None), (None, strata))
        return [paired_measure(ours, theirs, *groups) for groups in all_groups]
    all_groups = (independent, (clusters, None), (None, strata), (clusters, strata))
    return [paired_rate(ours, theirs, *groups) for groups in all_groups]


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(2, 120),
    shift=st.sampled_from([-0.6, -0.2, -0.05, 0.0, 0.05, 0.2, 0.6]),
    seed=st.integers(0, 10**6),
)
def test_nothing_contradicts(kind: str, n: int, shift: float, seed: int) -> None:
    found = estimates(kind, n, shift, seed)
    for one in found:
        if one.p is None or one.low is None or one.high is None:
            continue
        excludes_zero = one.low > 0 or one.high < 0
        assert excludes_zero == (one.p < ALPHA), one
        assert one.low <= one.value <= one.high
        if kind != "nats":
            for alpha in (0.2, 0.01, 0.002):
                wide = at_alpha(one, alpha)
                above, below = (p_beyond(one, 0.0, above=side) or 0.0 for side in (True, False))
                assert (wide.low > 0) == (above < alpha / 2)
                assert (wide.high < 0) == (below < alpha / 2)
    for delta in corrected([accuracy_delta(str(i), one) for i, one in enumerate(found)]):
        one = delta.estimate
        if delta.flag == "better":
            assert one.low > 0
        elif delta.flag == "worse":
            assert one.high < 0
        elif one.mde is not None and kind != "nats":
            assert abs(one.value) < one.mde, "a difference beyond the detectable one is shown"


def test_a_true_gain_in_fractions_is_seen() -> None:
    """30 prompts of 16 samples each, +0.10: a sign test never saw it."""
    shown = 0
    for seed in range(200):
        dice = np.random.default_rng(seed)
        chances = dice.uniform(0.2, 0.7, 30)
        found = paired_rate(dice.binomial(16, chances + 0.1) / 16, dice.binomial(16, chances) / 16)
        shown += found.p is not None and found.p < ALPHA
    assert shown > 0.8 * 200


def test_many_small_gains_and_few_large_losses_are_no_shown_difference() -> None:
    """17 prompts + 1/16 and 3 prompts - 12/16: it was flagged worse because 17 rose."""
    ours = np.array([9 / 16] * 17 + [0 / 16] * 3)
    theirs = np.array([8 / 16] * 17 + [12 / 16] * 3)
    (delta,) = corrected([accuracy_delta("sums", paired_rate(ours, theirs))])
    assert delta.flag == "unclear"
    assert delta.estimate.p > 0.3


def lognormal(dice: np.random.Generator, n: int) -> Estimate:
    return paired_mean(np.exp(0.5) - dice.lognormal(0, 1, n), np.zeros(n))


def test_few_skewed_differences_are_told() -> None:
    dice = np.random.default_rng(0)
    told = [lognormal(dice, 40).is_skewed for _ in range(200)]
    plain = [paired_mean(dice.normal(0, 1, 40), np.zeros(40)).is_skewed for _ in range(200)]
    assert sum(told) > 0.6 * 200
    assert sum(plain) < 0.02 * 200
