"""Intervals, p-values and detectable effects against known answers; seeds are fixed."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize, stats

from evaluation.bridge.estimate import Estimate
from evaluation.bridge.paired_binary import p_beyond, paired_rate
from evaluation.bridge.statistics import (
    holm,
    macro_mean,
    paired_mean,
    paired_measure,
    paired_perplexity,
    paired_ratio,
)
from evaluation.metrics.variance import Floats

RUNS = 1200
"""Coverage of 95 % is then known to about 0.6 %."""


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low - 1e-12 <= truth <= estimate.high + 1e-12


def test_ratio_by_hand() -> None:
    """Nats 4 and 2 more, over 2 and 4 tokens: R = 1, residuals 2 and -2 over 6 tokens."""
    estimate = paired_ratio(np.array([5.0, 5]), np.array([1.0, 3]), np.array([2.0, 4]))
    assert estimate.value == 1
    assert estimate.se == pytest.approx(math.sqrt(2 * 8) / 6)


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


@pytest.mark.parametrize(("clusters", "size"), [(400, 1), (40, 10), (12, 20)])
def test_coverage_of_a_mean(clusters: int, size: int) -> None:
    rng = np.random.default_rng(clusters)
    names = [str(i) for i in range(clusters) for _ in range(size)]
    hits = 0
    for _ in range(RUNS):
        common = np.repeat(rng.normal(0, 1, clusters), size)
        difference = 0.2 + common + rng.normal(0, 1, clusters * size)
        hits += covers(paired_mean(difference, np.zeros_like(difference), names), 0.2)
    assert hits / RUNS == pytest.approx(0.95, abs=0.02)


def _blocks(rng: np.random.Generator, n: int, carry: float) -> tuple[Floats, Floats, Floats]:
    """Nats of two models on blocks of 30 to 60 tokens; noise carries over to the next block."""
    tokens = rng.integers(30, 60, n).astype(float)
    noise = rng.normal(0, 0.05, n + 1)
    shared = rng.normal(3, 0.3, n)
    ours = (shared - 0.03 + noise[1:] + carry * noise[:-1]) * tokens
    return ours, shared * tokens, tokens


@pytest.mark.parametrize("carry", [0.0, 0.5])
def test_coverage_of_perplexity(carry: float) -> None:
    rng = np.random.default_rng(7)
    hits = 0
    truth = math.exp(3 - 0.03) - math.exp(3)
    for _ in range(RUNS):
        ours, theirs, tokens = _blocks(rng, 300, carry)
        hits += covers(paired_perplexity(ours, theirs, tokens), truth)
    assert hits / RUNS == pytest.approx(0.95, abs=0.02)


def test_pairing_narrows_perplexity() -> None:
    ours, theirs, tokens = _blocks(np.random.default_rng(1), 200, 0.0)
    paired = paired_perplexity(ours, theirs, tokens)
    shuffled = np.random.default_rng(2).permutation(200)
    apart = paired_perplexity(ours * 1, (theirs / tokens)[shuffled] * tokens, tokens)
    assert paired.se < apart.se / 3


def _credits(rng: np.random.Generator, n: int, wins: float, losses: float) -> Floats:
    draw = rng.random(n)
    return np.where(draw < wins, 1.0, np.where(draw < wins + losses, -1.0, 0.0))


@pytest.mark.parametrize(
    ("n", "wins", "losses"), [(1000, 0.06, 0.04), (500, 0.02, 0.02), (200, 0.05, 0.02)]
)
def test_coverage_of_a_rate(n: int, wins: float, losses: float) -> None:
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(RUNS):
        d = _credits(rng, n, wins, losses)
        hits += covers(paired_rate(d.clip(0), (-d).clip(0)), wins - losses)
    assert hits / RUNS == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("wins", "losses"), [(5, 0), (6, 0), (9, 3), (12, 12), (0, 1)])
def test_few_discordant_items_by_the_exact_test(wins: int, losses: int) -> None:
    d = np.array([1.0] * wins + [-1.0] * losses + [0.0] * 200)
    estimate = paired_rate(d.clip(0), (-d).clip(0))
    assert estimate.p == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)
    assert estimate.low <= estimate.value <= estimate.high
    assert (estimate.p < 0.05) == (estimate.low > 0 or estimate.high < 0)


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


def test_no_discordant_item_still_has_a_detectable_effect() -> None:
    estimate = paired_rate(np.ones(1000), np.ones(1000))
    assert (estimate.value, estimate.p) == (0, 1)
    assert estimate.high == pytest.approx(3.84 / 1003.84, rel=1e-3)
    assert 6 / 1000 < estimate.mde < 9 / 1000


def test_five_items_can_never_reject() -> None:
    estimate = paired_rate(np.ones(5), np.zeros(5))
    assert estimate.p > 0.05
    assert estimate.mde is None
    assert "never reject" in (estimate.note or "")


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


def test_few_discordant_items_in_clusters_are_not_narrower() -> None:
    d = np.zeros(300)
    d[:8] = 1
    clusters = [str(i // 10) for i in range(300)]
    alone, together = paired_rate(d, np.zeros(300)), paired_rate(d, np.zeros(300), clusters)
    assert together.se >= alone.se
    assert together.units == 30


@pytest.mark.parametrize("n", [600, 2500])
def test_a_planted_effect_of_the_size_of_the_mde_is_found_as_often_as_the_power(n: int) -> None:
    rng = np.random.default_rng(n)
    d = _credits(rng, 200_000, 0.05, 0.05)
    mde = float((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * d.std() / math.sqrt(n))
    found, sizes = 0, []
    for _ in range(RUNS):
        d = _credits(rng, n, 0.05 + mde / 2, 0.05 - mde / 2)
        estimate = paired_rate(d.clip(0), (-d).clip(0))
        found += estimate.p < 0.05
        sizes.append(estimate.mde)
    assert found / RUNS == pytest.approx(0.8, abs=0.035)
    assert np.mean(sizes) == pytest.approx(mde, rel=0.05)


def test_holm_leaves_out_what_has_no_p_value() -> None:
    adjusted = holm({"a": 0.01, "b": 0.04, "c": None, "d": 0.03})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.06, "c": None, "d": 0.06})


def test_macro_mean_adds_variances() -> None:
    rng = np.random.default_rng(4)
    parts = {str(i): paired_mean(rng.normal(0, 1 + i, 50), np.zeros(50)) for i in range(4)}
    macro = macro_mean(parts)
    errors = [part.se for part in parts.values() if part.se is not None]
    assert macro.se == pytest.approx(math.sqrt(sum(se**2 for se in errors)) / 4)
    assert macro.value == pytest.approx(np.mean([part.value for part in parts.values()]))
    assert 49 < macro.df < 4 * 49
    one = {"only": parts["0"]}
    assert macro_mean(one) == parts["0"]


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
        paired_ratio(np.arange(1.0, 10), np.arange(1.0, 10), np.ones(9)),
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
