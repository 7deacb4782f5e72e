"""How much a task can tell, on simulated stages of known truth and against scipy and statsmodels."""

import itertools

import numpy as np
import pytest
from scipy import stats

from evaluation.bridge.estimate import ALPHA, POWER
from evaluation.bridge.exact_tests import mcnemar
from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.power import (
    Series,
    agreement,
    needed_units,
    power,
    power_sentence,
    smallest_shown,
    times_needed,
)
from evaluation.bridge.statistics import mean_difference
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout
from tests.conftest import ROOT

STEPS = [500, 1500, 3500, 5000, 9000, 9500]


def test_monotonicity_is_scipys_with_ties() -> None:
    dice = np.random.default_rng(1)
    for _ in range(50):
        values = dice.integers(0, 4, len(STEPS)).tolist()
        if len(set(values)) > 1:
            wanted = stats.spearmanr(STEPS, values).statistic
            assert Series(STEPS, values).monotonicity == pytest.approx(wanted)
    assert Series(STEPS, [1.0] * 6).monotonicity is None
    assert Series(STEPS[:2], [1.0, 2.0]).monotonicity is None


def test_a_straight_line_is_signal_and_no_noise() -> None:
    line = [0.25 + 1e-5 * step for step in STEPS]
    assert Series(STEPS, line).noise == pytest.approx(0, abs=1e-12)
    assert Series(STEPS, line).signal == pytest.approx(0.09)


@pytest.mark.parametrize("curve", [0.0, 0.2])
def test_noise_is_found_whatever_the_trend(curve: float) -> None:
    """Of a known standard deviation about a straight or bent curve, at uneven steps."""
    dice = np.random.default_rng(2)
    steps = np.cumsum(dice.integers(500, 1500, 400))
    truth = curve * np.log(steps / steps[0])
    values = truth + dice.normal(0, 0.01, len(steps))
    assert Series(steps.tolist(), values.tolist()).noise == pytest.approx(0.01, rel=0.1)


def test_agreement_is_kendalls_tau() -> None:
    dice = np.random.default_rng(4)
    ours, theirs = dice.normal(0, 1, 8).tolist(), dice.normal(0, 1, 8).tolist()
    wanted = (1 + stats.kendalltau(ours, theirs).statistic) / 2
    assert agreement(ours, theirs) == pytest.approx(wanted)
    assert agreement([0.5] * 3, [1.0, 2.0, 3.0]) == 0.5
    assert agreement([1.0], [2.0]) is None


@pytest.mark.parametrize(
    ("n", "change", "changing"),
    [(56, 0.14, 0.14), (120, 0.08, 0.1), (120, 0.05, 0.3), (30, 0.3, 0.5)],
)
def test_power_is_how_often_the_exact_test_rejects(n: int, change: float, changing: float) -> None:
    draws = 20_000
    up = (changing + change) / 2
    rates = (up, changing - up, 1 - changing)
    counts = np.random.default_rng(0).multinomial(n, rates, draws)[:, :2]
    known = {tuple(one) for one in counts.tolist()}
    shown = {one: mcnemar(*one) < 0.05 and one[0] > one[1] for one in known}
    seen = np.mean([shown[tuple(one)] for one in counts.tolist()])
    assert power(n, change, changing) == pytest.approx(seen, abs=4 * np.sqrt(0.25 / draws))


@pytest.mark.parametrize("changing", [None, 0.1, 0.2, 0.3])
def test_the_smallest_that_is_shown(changing: float | None) -> None:
    found = smallest_shown(120, changing)
    for factor, is_enough in ((1.001, True), (0.999, False)):
        change = found * factor
        assert (power(120, change, changing or change) >= 0.8) == is_enough


def test_few_prompts() -> None:
    said = "With 5 prompts, no change of a rate can be shown with probability 0.8."
    assert said in power_sentence(5, "prompts")
    assert "37 percentage points and all in one direction." in power_sentence(20, "prompts")


def test_the_sentence_of_the_docs_is_computed() -> None:
    text = " ".join((ROOT / "docs" / "verdicts.md").read_text().split())
    assert power_sentence(105, "prompts") in text


@pytest.mark.parametrize(("deviation", "difference"), [(1.0, 0.1), (0.3, 0.1), (2.0, 1.5)])
def test_questions_by_t_are_those_of_statsmodels(deviation: float, difference: float) -> None:
    peer = pytest.importorskip("statsmodels.stats.power").TTestPower()
    wanted = peer.solve_power(difference / deviation, alpha=ALPHA, power=POWER)
    assert wanted - 1 <= needed_units(deviation**2, difference) <= wanted + 2


@pytest.mark.parametrize(
    ("turning", "difference"),
    [*itertools.product([0.1, 0.3], [0.03, 0.1]), (0.05, 0.05), (0.12, 0.1)],
)
def test_so_many_questions_decide_an_accuracy(turning: float, difference: float) -> None:
    """The predicted number gives the power within five points, by the test that decides."""
    n = needed_units(turning - difference**2, difference, turning)
    dice = np.random.default_rng([int(1000 * turning), int(1000 * difference)])
    wins = (turning + difference) / 2
    drawn = dice.random((500, n))
    ours, theirs = drawn < wins, (drawn >= wins) & (drawn < turning)
    p_values = [paired_rate(a * 1.0, b * 1.0).p for a, b in zip(ours, theirs, strict=True)]
    assert np.mean([p < ALPHA for p in p_values]) == pytest.approx(POWER, abs=0.05)


def test_what_never_differs_says_nothing_of_how_many_are_needed() -> None:
    assert needed_units(0.0, 0.05, 0.0) is None
    assert needed_units(0.0, 0.05) is None


@pytest.mark.parametrize(
    ("n", "difference", "alpha"), [(12, 0.4, 0.01), (12, 0.1, 0.05), (6, 1.0, 0.05)]
)
def test_so_many_times_as_many_prompts_have_the_power(
    n: int, difference: float, alpha: float
) -> None:
    """Few prompts have a large quantile of Student's t, which more prompts do not have."""
    dice = np.random.default_rng(n)
    amounts = stats.norm.ppf((np.arange(n) + 0.5) / n)
    amounts *= 1 / amounts.std(ddof=1)  # symmetric, of standard deviation 1
    pilot = mean_difference(Differences(kind="measure", amounts=amounts, layout=Layout(n)))
    times = times_needed(pilot, difference, alpha)
    assert times is not None
    assert pilot.mde is not None
    assert times <= (pilot.mde / difference) ** 2 or alpha < ALPHA
    drawn = dice.normal(difference, 1, (4000, round(n * times)))
    rejected = stats.ttest_1samp(drawn, 0, axis=1).pvalue < alpha
    assert rejected.mean() == pytest.approx(POWER, abs=0.035)


def test_enough_prompts_need_no_more() -> None:
    pilot = paired_rate(np.repeat([1.0, 0.0], [60, 340]), np.repeat([0.0, 1.0, 0.0], [60, 40, 300]))
    assert times_needed(pilot, 0.5, ALPHA) == 1.0
