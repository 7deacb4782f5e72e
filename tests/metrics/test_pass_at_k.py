"""pass@k, its relatives and intervals over prompts: by hand, by enumeration, by simulation."""

import itertools
import math

import numpy as np
import pytest

from evaluation.grading.completions import majority, pass_at_k
from evaluation.metrics.variance import interval


@pytest.mark.parametrize("n", range(1, 7))
def test_it_is_the_share_of_draws_with_a_right_one(n: int) -> None:
    for right in range(n + 1):
        samples = [index < right for index in range(n)]
        for k in range(1, n + 1):
            draws = list(itertools.combinations(samples, k))
            assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_large_numbers_are_the_binomials() -> None:
    expected = 1 - math.comb(512 - 3, 64) / math.comb(512, 64)
    assert pass_at_k(512, 3, 64) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("answers", "right", "expected"),
    [
        (["5", "5", "6"], [True, True, False], 1.0),
        (["5", "6", "6"], [True, False, False], 0.0),
        (["5", "6"], [True, False], 0.5),
        ([None, None, "5"], [False, False, True], 1.0),
        ([None, None], [False, False], 0.0),
    ],
)
def test_the_majority_votes(answers: list[str | None], right: list[bool], expected: float) -> None:
    assert majority([*zip(answers, right, strict=True)]) == expected


@pytest.mark.parametrize(("n", "k"), [(8, 1), (8, 4), (16, 8), (16, 16)])
def test_intervals_over_prompts_cover_and_the_estimate_has_no_bias(n: int, k: int) -> None:
    """Prompts of every difficulty, as many drawn anew each time."""
    dice = np.random.default_rng(n * 100 + k)
    truth = 1 - _moment(0.6, 1.4, k)
    runs, prompts, covered, estimates = 400, 150, 0, []
    table = [pass_at_k(n, right, k) for right in range(n + 1)]
    for _ in range(runs):
        rates = dice.beta(0.6, 1.4, prompts)
        values = np.asarray([table[right] for right in dice.binomial(n, rates)])
        found = interval(values)
        covered += found.low <= truth <= found.high
        estimates.append(found.value)
    assert abs(np.mean(estimates) - truth) < 4 * np.std(estimates) / math.sqrt(runs)
    assert 0.92 <= covered / runs <= 0.98  # 95 % give or take 3 standard deviations of 400 runs


def _moment(a: float, b: float, k: int) -> float:
    """E[(1 - p)^k] of p ~ Beta(a, b)."""
    return math.prod((b + i) / (a + b + i) for i in range(k))
