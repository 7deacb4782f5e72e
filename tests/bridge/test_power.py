"""How much a task can tell, on simulated stages of known truth and against scipy and statsmodels."""

import itertools

import numpy as np
import pytest
from scipy import stats

from evaluation.bridge.estimate import ALPHA, POWER
from evaluation.bridge.exact_tests import mcnemar
from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.power import Series, needed_units, power

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
