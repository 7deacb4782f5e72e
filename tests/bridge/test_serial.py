"""Intervals over blocks that depend on their neighbours, or are skewed; seeds are fixed."""

from collections.abc import Iterable

import numpy as np
import pytest
from scipy import signal

from evaluation.bridge.estimate import Estimate
from evaluation.bridge.statistics import paired_ratio
from evaluation.metrics.serial_dependence import cosines, serial_variance
from evaluation.metrics.variance import Floats


def estimates(draws: Iterable[Floats]) -> list[Estimate]:
    return [paired_ratio(draw, np.zeros_like(draw), np.ones_like(draw)) for draw in draws]


def share_covered(draws: Iterable[Floats]) -> float:
    return float(np.mean([one.low <= 0 <= one.high for one in estimates(draws)]))


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
    truth, found = np.exp(0.32), estimates(draws)
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
