"""Values with the standard error and interval that belong to them: against scipy, by hand, by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from evaluation.metrics.layout import Layout
from evaluation.metrics.value_interval import interval, standard_error


@pytest.mark.parametrize(("right", "n"), [(0, 24), (1, 7), (9, 30), (199, 200), (40, 40)])
def test_units_without_groups_have_wilsons_interval(right: int, n: int) -> None:
    credit = np.arange(n) < right
    found, expected = interval(credit.astype(float)), stats.binomtest(right, n)
    assert (found.low, found.high) == pytest.approx(expected.proportion_ci(method="wilson"))
    assert found.stderr == (pytest.approx(stats.sem(credit)) if 0 < right < n else None)


def test_clusters_that_answer_alike_count_once() -> None:
    answers = np.array([1.0, 0, 1, 1, 0, 1, 1, 1])
    names = [str(i) for i in range(8) for _ in range(5)]
    found = interval(np.repeat(answers, 5), Layout(40, names))
    alone = interval(answers)
    assert found.stderr == pytest.approx(alone.stderr)
    z = stats.t.ppf(0.975, 7)  # as the variance is estimated from eight clusters
    centre, n = (0.75 + z * z / 16) / (1 + z * z / 8), 8
    half = z / (1 + z * z / n) * math.sqrt(0.75 * 0.25 / n + z * z / (4 * n * n))
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half))
    assert found.low < alone.low
    assert found.high > alone.high


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_all_are_alike_clusters_are_what_was_drawn(value: float) -> None:
    names = [str(i // 10) for i in range(80)]
    found, alone = (interval(np.full(80, value), Layout(80, own)) for own in (names, None))
    assert found.stderr is alone.stderr is None
    assert found.high - found.low > 3 * (alone.high - alone.low)


def test_fractions_have_the_interval_of_a_share_with_their_error() -> None:
    """About half of many prompts, Wilson's interval is nearly Student's of cluster means."""
    means = np.tile([0.25, 0.375, 0.5, 0.625, 0.75], 12)
    credit = np.repeat(means, 4)
    found = interval(credit, Layout(240, [str(i // 4) for i in range(240)]))
    own = stats.t.interval(0.95, 59, means.mean(), stats.sem(means))
    assert found.stderr == pytest.approx(stats.sem(means))
    assert (found.low, found.high) == pytest.approx(own, abs=5e-4)


def test_strata_leave_only_the_variation_within_them() -> None:
    credit, strata = np.array([0.0, 0.25, 0.25, 0.5, 0.5, 0.75, 1.0, 0.75]), ["a"] * 4 + ["b"] * 4
    found = interval(credit, Layout(8, None, strata))
    within = [np.var(credit[part], ddof=1) / 4 for part in (slice(4), slice(4, 8))]
    assert found.stderr == pytest.approx(math.sqrt(sum(within) / 4))
    assert found.stderr < interval(credit).stderr


def test_prompts_that_are_all_half_right_may_be_half_right_by_chance() -> None:
    found = interval(np.full(20, 0.5))
    assert found.stderr is None
    assert found.low < 0.31
    assert found.high > 0.69


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_values_that_differ_by_rounding_are_alike(value: float) -> None:
    """The probability of a wrong answer underflows to 0 for some, and is 1e-48 for others."""
    nearly = np.abs(value - np.array([0.0, 1e-48, 1e-12, 0.0, 1e-30, 0.0]))
    found, alike = interval(nearly), interval(np.full(6, value))
    assert found.stderr is None
    assert (found.low, found.high) == pytest.approx((alike.low, alike.high), abs=1e-9)


def test_what_has_no_variance_has_no_interval() -> None:
    one_cluster = Layout(4, ["a"] * 4)
    assert interval(np.ones(1)) == (1.0, None, None, None)
    assert interval(np.array([0.0, 1, 1, 1]), one_cluster) == (0.75, None, None, None)
    assert standard_error(np.full(6, 0.1), Layout(6)) is None


@pytest.mark.parametrize("samples", [1, 8])
def test_intervals_cover_where_prompts_of_a_template_vary_together(samples: int) -> None:
    """16 templates of 5 prompts; intervals over prompts cover in fewer than 85 % of draws."""
    dice, covered, naive = np.random.default_rng(samples), 0, 0
    names = [str(i // 5) for i in range(80)]
    for _ in range(800):
        rates = np.repeat(dice.beta(1.5, 1.5, 16), 5)
        credit = dice.binomial(samples, rates) / samples
        for own in (names, None):
            found = interval(credit, Layout(80, own))
            holds = found.low <= 0.5 <= found.high
            covered, naive = covered + (own is not None) * holds, naive + (own is None) * holds
    assert 0.93 <= covered / 800 <= 0.975
    assert naive / 800 < 0.85
