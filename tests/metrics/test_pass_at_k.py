"""pass@k and cons@n, by hand and by enumeration; intervals over prompts are in tests/bridge/worlds.py."""

import itertools
import math

import pytest

from evaluation.grading.completions import majority, pass_at_k


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
