"""Intervals, p-values and detectable effects against known answers; seeds are fixed."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy import optimize, signal, stats

from evaluation.bridge.estimate import Estimate, Link, derived
from evaluation.bridge.paired_binary import p_beyond, paired_rate
from evaluation.bridge.statistics import ratio_of_blocks
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.serial_dependence import cosines, serial_variance
from evaluation.metrics.variance import Floats
from tests.bridge.paired import paired_mean, paired_measure

RUNS = 1200
"""Coverage of 95 % is then known to about 0.6 %."""


@pytest.mark.parametrize("estimator", [paired_mean, paired_measure])
def test_means_are_the_paired_t_test_where_nothing_is_skewed(
    estimator: Callable[[Floats, Floats], Estimate],
) -> None:
    half = np.random.default_rng(0).normal(0, 1, 20)
    ours, theirs = 0.3 + np.concatenate([half, -half]), np.zeros(40)
    estimate = estimator(ours, theirs)
    known = stats.ttest_rel(ours, theirs)
    interval = known.confidence_interval(0.95)
    assert estimate.p == pytest.approx(known.pvalue)
    assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high))


def _clustered(rng: np.random.Generator, clusters: int, size: int) -> Estimate:
    """0.2, and what clusters have in common."""
    common = np.repeat(rng.normal(0, 1, clusters), size)
    difference = 0.2 + common + rng.normal(0, 1, clusters * size)
    names = [str(i // size) for i in range(clusters * size)]
    return paired_mean(difference, np.zeros_like(difference), names)


def _perplexity(rng: np.random.Generator, carry: float) -> Estimate:
    """Two models on blocks of 30 to 60 tokens; noise carries over to the next block."""
    tokens = rng.integers(30, 60, 300).astype(float)
    noise, shared = rng.normal(0, 0.05, 301), rng.normal(3, 0.3, 300)
    ours = (shared - 0.03 + noise[1:] + carry * noise[:-1]) * tokens
    theirs = shared * tokens
    level = math.exp(theirs.sum() / tokens.sum())
    return derived(ratio_of_blocks(ours - theirs, tokens), Link("exp", level))


def _rate(rng: np.random.Generator, n: int, wins: float, losses: float) -> Estimate:
    draw = rng.random(n)
    return paired_rate((draw < wins) * 1.0, ((draw >= wins) & (draw < wins + losses)) * 1.0)


@pytest.mark.parametrize(
    ("draw", "how", "truth"),
    [
        *((_clustered, how, 0.2) for how in ((400, 1), (40, 10), (12, 20))),
        *((_perplexity, (carry,), math.exp(3 - 0.03) - math.exp(3)) for carry in (0.0, 0.5)),
        (_rate, (1000, 0.06, 0.04), 0.02),
        (_rate, (500, 0.02, 0.02), 0.0),
        (_rate, (200, 0.05, 0.02), 0.03),
    ],
)
def test_coverage(draw: Callable[..., Estimate], how: tuple[Any, ...], truth: float) -> None:
    rng = np.random.default_rng(7)
    found = [draw(rng, *how) for _ in range(RUNS)]
    hits = sum(one.low - 1e-12 <= truth <= one.high + 1e-12 for one in found)
    assert hits / RUNS == pytest.approx(0.95, abs=0.02)


def by_blocks(draws: Iterable[Floats]) -> list[Estimate]:
    return [ratio_of_blocks(draw, np.ones_like(draw)) for draw in draws]


def share_covered(draws: Iterable[Floats]) -> float:
    return float(np.mean([one.low <= 0 <= one.high for one in by_blocks(draws)]))


@pytest.mark.parametrize("n", [100, 2441])
@pytest.mark.parametrize("carry", [0.0, 0.3, 0.6])
def test_coverage_with_carry_over(n: int, carry: float) -> None:
    noise = np.random.default_rng(n).normal(0, 1, (2500, n + 200))
    draws = signal.lfilter([1.0], [1.0, -carry], noise)[:, 200:]
    assert share_covered(draws) == pytest.approx(0.95, abs=0.02)


def test_dependence_that_skips_neighbours_is_seen() -> None:
    """A moving sum of blocks t and t - 3: variance 2, long-run variance 4."""
    noise = np.random.default_rng(1).normal(0, 1, (1500, 1003))
    assert share_covered(noise[:, 3:] + noise[:, :-3]) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("n", [100, 300])
def test_skewed_blocks_miss_on_both_sides_alike(n: int) -> None:
    rng = np.random.default_rng(n)
    draws = [rng.lognormal(0, 0.8, n) for _ in range(3000)]
    truth, found = np.exp(0.32), by_blocks(draws)
    above = np.mean([one.high < truth for one in found])
    below = np.mean([one.low > truth for one in found])
    assert above + below <= 0.075
    assert above <= 0.06
    plain = np.mean([d.mean() + 1.97 * d.std(ddof=1) / np.sqrt(n) < truth for d in draws])
    assert above < plain - 0.005


@pytest.mark.parametrize("n", [8, 9, 200])
def test_cosines_by_definition(n: int) -> None:
    values = np.random.default_rng(n).normal(0, 1, n)
    phase = np.pi * (np.arange(n) + 0.5) / n
    wanted = [np.cos(j * phase) @ values for j in range(1, 5)]
    assert cosines(values, 4) == pytest.approx(np.sqrt(2 / 4) * np.array(wanted))


def test_variance_is_never_below_that_of_independent_blocks() -> None:
    values = np.tile([1.0, -1.0], 50)
    variance = serial_variance(values / 100)
    assert variance.value == pytest.approx(100 / 99 / 100)


def _few(wins: int, losses: int, n: int) -> Estimate:
    d = np.array([1.0] * wins + [-1.0] * losses + [0.0] * (n - wins - losses))
    return paired_rate(d.clip(0), (-d).clip(0))


def test_tango_interval_as_published() -> None:
    """Tango's example of crossover data: 44 pairs, 9 against 1 (Statistics in Medicine, 1998)."""
    none, z2 = _few(0, 0, 100), stats.norm.ppf(0.975) ** 2
    assert (none.low, none.high) == pytest.approx((-z2 / (100 + z2), z2 / (100 + z2)))
    found = _few(9, 1, 44)
    assert found.low == pytest.approx(-_few(1, 9, 44).high)
    for d in (found.low, found.high):
        q = _likeliest_losses(9, 1, 44, d)
        score = (8 - 44 * d) / math.sqrt(44 * (2 * q + d * (1 - d)))
        assert abs(score) == pytest.approx(stats.norm.ppf(0.975), abs=1e-4)


def _likeliest_losses(wins: int, losses: int, n: int, d: float) -> float:
    """By search: the rate q of losses with wins at q + d that makes the counts likeliest."""
    q = np.linspace(max(0, -d) + 1e-9, (1 - d) / 2 - 1e-9, 2_000_001)
    likelihood = (
        wins * np.log(q + d) + losses * np.log(q) + (n - wins - losses) * np.log1p(-2 * q - d)
    )
    return float(q[likelihood.argmax()])


def test_where_no_item_or_every_one_of_a_few_differs() -> None:
    same, all_of_five = _few(0, 0, 1000), _few(5, 0, 5)
    assert (same.value, same.p) == (0, 1)
    assert 6 / 1000 < same.mde < 9 / 1000
    assert all_of_five.p > 0.05
    assert all_of_five.mde is None
    assert "never reject" in (all_of_five.note or "")


def test_fractions_are_a_mean_of_real_numbers() -> None:
    """Ten of 40 gain one half: t with nine degrees of freedom, as ten items differ."""
    ours, theirs = np.array([0.5, 1, 0, 1] * 10), np.array([0.0, 1, 0, 1] * 10)
    estimate = paired_rate(ours, theirs)
    assert estimate.value == pytest.approx(0.125)
    t = stats.ttest_rel(ours, theirs).statistic
    assert estimate.p == pytest.approx(2 * stats.t.sf(t, 9))
    assert estimate.counts is None


def test_hall_s_interval_by_hand() -> None:
    """The wider of Student's and Hall's on each side, by scipy's moments and root."""
    d = np.random.default_rng(3).lognormal(0, 1, 40) - 1.2
    n, se, skew = 40, stats.sem(d), stats.skew(d)

    def g(t: float) -> float:
        return float(t + skew / n**0.5 * (t**2 / 3 + 1 / 6) + skew**2 / n * t**3 / 27)

    half = stats.t.ppf(0.975, n - 1)
    hall = [optimize.brentq(lambda t, to=to: g(t) - to, -50, 50) for to in (half, -half)]
    estimate = paired_mean(d, np.zeros(n))
    assert estimate.low == pytest.approx(d.mean() - se * max(half, hall[0]), rel=1e-6)
    assert estimate.high == pytest.approx(d.mean() - se * min(-half, hall[1]), rel=1e-6)
    assert max(half, hall[0]) == half
    assert min(-half, hall[1]) == hall[1]


def test_where_no_item_differs_clusters_are_what_was_drawn() -> None:
    clusters = [str(i // 10) for i in range(300)]
    together, alone = (paired_rate(np.ones(300), np.ones(300), names) for names in (clusters, None))
    thirty = paired_rate(np.ones(30), np.ones(30))
    assert (together.low, together.high, together.mde) == (thirty.low, thirty.high, thirty.mde)
    assert (together.n, together.units) == (300, 30)
    assert together.high > 5 * alone.high
    assert "equal clusters" in (together.note or "")


def test_clusters_that_every_stratum_has_are_whole() -> None:
    """20 templates with 5 variants each, which are strata: it is the means of templates that vary."""
    rng = np.random.default_rng(3)
    means = rng.normal(0, 1, 20)
    variants = np.tile(rng.normal(0, 2, 5), 20)
    d = np.repeat(means, 5) + variants + rng.normal(0, 0.1, 100)
    templates, kinds = [str(i // 5) for i in range(100)], [str(i % 5) for i in range(100)]
    estimate = paired_mean(d, np.zeros(100), templates, kinds)
    assert estimate.se == pytest.approx(stats.sem(d.reshape(20, 5).mean(axis=1)))
    assert (estimate.units, estimate.df) == (20, 19)


@pytest.mark.parametrize("n", [600, 2500])
def test_a_planted_effect_of_the_size_of_the_mde_is_found_as_often_as_the_power(n: int) -> None:
    rng = np.random.default_rng(n)
    mde = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * math.sqrt(0.1 / n)  # one in ten differs
    drawn = [_rate(rng, n, 0.05 + mde / 2, 0.05 - mde / 2) for _ in range(RUNS)]
    assert np.mean([one.p < 0.05 for one in drawn]) == pytest.approx(0.8, abs=0.035)
    assert np.mean([one.mde for one in drawn]) == pytest.approx(mde, rel=0.05)


def test_the_mean_of_two_tasks_is_welchs_t_test() -> None:
    """Of a and -b: half their difference, whose p-value and degrees of freedom are the same."""
    rng = np.random.default_rng(4)
    a, b = (np.concatenate([half, -half]) for half in (rng.normal(0, 1, 10), rng.normal(0, 5, 30)))
    parts = {"a": paired_mean(a + 1, np.zeros(20)), "b": paired_mean(-b, np.zeros(60))}
    macro, peer = macro_mean(parts), stats.ttest_ind(a + 1, b, equal_var=False)
    assert (macro.value, macro.df, macro.p) == pytest.approx((0.5, peer.df, peer.pvalue))
    assert macro_mean({"only": parts["a"]}) == parts["a"]


@pytest.mark.parametrize(
    ("estimate", "note"),
    [
        (paired_mean(np.ones(1), np.zeros(1)), "one item"),
        (paired_mean(np.arange(3.0), np.zeros(3), ["a"] * 3), "belong to one cluster"),
        (paired_mean(np.ones(9), np.zeros(9)), "all items differ alike"),
    ],
)
def test_what_cannot_be_known_is_said(estimate: Estimate, note: str) -> None:
    assert (estimate.low, estimate.high, estimate.p, estimate.mde) == (None,) * 4
    assert note in (estimate.note or "")
    assert p_beyond(estimate, 0.0, above=True) is None
    macro = macro_mean({"x": estimate, "y": paired_mean(np.arange(4.0), np.zeros(4))})
    assert macro.low is None
    assert "x: " in (macro.note or "")


@pytest.mark.parametrize(
    "estimate",
    [
        ratio_of_blocks(np.zeros(9), np.ones(9)),
        paired_measure(np.arange(5.0), np.arange(5.0)),
    ],
)
def test_the_same_scores_on_every_item_are_no_difference_at_all(estimate: Estimate) -> None:
    assert (estimate.low, estimate.value, estimate.high, estimate.p) == (0, 0, 0, 1)
    assert "the same on every item" in (estimate.note or "")
    assert p_beyond(estimate, -0.01, above=True) == 0
    other = paired_mean(np.arange(4.0), np.zeros(4))
    assert macro_mean({"x": estimate, "y": other}).se == pytest.approx((other.se or 0) / 2)
    assert macro_mean({"x": estimate, "y": estimate}).high == 0
