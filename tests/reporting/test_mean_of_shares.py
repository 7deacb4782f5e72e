"""Means of tasks' shares where some tasks are all right or all wrong: by scipy, hand and simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluation.bridge.estimate import Estimate, unknown
from evaluation.bridge.statistics import mean_difference
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout
from evaluation.metrics.value_interval import interval
from evaluation.reporting.tables.mean_of_shares import mean_of_shares


def share(credit: np.ndarray, layout: Layout | None = None) -> Estimate:
    amounts = Differences(kind="mean", amounts=credit, layout=layout or Layout(len(credit)))
    own = interval(credit, amounts.layout)
    mean = mean_difference(amounts)
    return replace(mean, se=own.stderr, low=own.low, high=own.high, differences=amounts)


def answers(right: int, n: int) -> np.ndarray:
    return (np.arange(n) < right).astype(float)


def evenly(*shares: Estimate) -> Estimate:
    own = {str(number): one for number, one in enumerate(shares)}
    return mean_of_shares(own, dict.fromkeys(own, 1 / len(own)))


def wilson(right: int, n: int) -> tuple[float, float]:
    return stats.binomtest(right, n).proportion_ci(method="wilson")


def test_one_task_all_right_beside_a_measured_one() -> None:
    """Newcombe's interval of the sum of two independent rates, halved."""
    mean = evenly(share(answers(30, 30)), share(answers(12, 40)))
    (low, high), (low_of_right, _) = wilson(12, 40), wilson(30, 30)
    assert mean.value == pytest.approx(0.65)
    assert mean.se is None
    assert mean.low == pytest.approx(0.65 - np.hypot(1 - low_of_right, 0.3 - low) / 2)
    assert mean.high == pytest.approx(0.65 + (high - 0.3) / 2)


@pytest.mark.parametrize("right", [0, 1])
def test_tasks_that_are_all_alike_are_as_one(right: int) -> None:
    """Ten tasks of ten questions are as a hundred; a small task that counts much is uncertain."""
    ten = evenly(*(share(answers(10 * right, 10)) for _ in range(10)))
    assert (ten.low, ten.high) == pytest.approx(wilson(100 * right, 100))
    uneven = evenly(share(answers(10 * right, 10)), share(answers(1000 * right, 1000)))
    assert (uneven.low, uneven.high) == pytest.approx(wilson(20 * right, 20))


def test_all_right_and_all_wrong_have_each_their_side() -> None:
    mean = evenly(share(answers(20, 20)), share(answers(0, 50)))
    assert mean.low == pytest.approx(0.5 - (1 - wilson(20, 20)[0]) / 2)
    assert mean.high == pytest.approx(0.5 + wilson(0, 50)[1] / 2)


def test_one_task_under_two_names_is_as_one() -> None:
    rows = Layout(20, sources=[[str(i) for i in range(20)]])
    twice = evenly(*(share(answers(20, 20), rows) for _ in range(2)))
    assert (twice.low, twice.high) == pytest.approx(wilson(20, 20))


def test_bounds_of_another_program_are_used() -> None:
    theirs = replace(unknown(0.8, n=0, units=0, note=""), low=0.7, high=0.85)
    mean = evenly(theirs, share(answers(20, 20)))
    assert mean.low == pytest.approx(0.9 - np.hypot(0.1, 1 - wilson(20, 20)[0]) / 2)
    assert mean.high == pytest.approx(0.9 + 0.05 / 2)
    assert evenly(replace(theirs, low=None, high=None), share(answers(20, 20))).low is None


@pytest.mark.parametrize("rates", [(0.99, 0.6, 0.3), (0.985, 0.99, 0.02), (0.97, 0.5, 0.02)])
def test_intervals_cover(rates: tuple[float, ...]) -> None:
    """Draws in which at least one of three tasks is all right or all wrong, and all others."""
    dice, held = np.random.default_rng(5), {True: [], False: []}
    sizes = (30, 60, 25)
    for _ in range(1500):
        drawn = [dice.binomial(1, p, n).astype(float) for p, n in zip(rates, sizes, strict=True)]
        mean = evenly(*map(share, drawn))
        held[any(np.ptp(one) == 0 for one in drawn)].append(mean.low <= np.mean(rates) <= mean.high)
    assert min(map(len, held.values())) > 100
    assert np.mean(held[True] + held[False]) >= 0.94
    assert all(np.mean(some) >= 0.93 for some in held.values())
