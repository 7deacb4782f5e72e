"""pass@k, its relatives and intervals, and the loss by position: by hand, by enumeration, by simulation."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from evaluation.errors import ScoringError
from evaluation.metrics.pass_at_k import interval, majority, pass_at_k, powers
from evaluation.metrics.perplexity import summarize_blocks
from evaluation.metrics.positions import bin_starts, summarize_positions


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


def test_more_draws_than_samples_are_refused() -> None:
    with pytest.raises(ScoringError, match=r"pass@8 cannot be computed from 4 samples; raise"):
        pass_at_k(4, 4, 8)


@pytest.mark.parametrize(
    ("n", "expected"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
)
def test_the_ks_that_are_told(n: int, expected: list[int]) -> None:
    assert powers(n) == expected


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
    assert majority(answers, right) == expected


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


def test_all_wrong_is_not_surely_zero_and_one_prompt_has_no_interval() -> None:
    found = interval(np.zeros(24))
    assert found.low == 0
    assert found.high == pytest.approx(0.138, abs=1e-3)  # Wilson's, z²/(n + z²)
    assert interval(np.ones(1)) == (1.0, None, None, None)


def table_of(nats: list[list[float]], tokens: list[list[int]]) -> pa.Table:
    return pa.table(
        {
            "nats": [math.fsum(row) for row in nats],
            "tokens": [sum(row) for row in tokens],
            "bytes": [4 * sum(row) for row in tokens],
            "nats_by_position": nats,
            "tokens_by_position": tokens,
        }
    )


@pytest.mark.parametrize(
    ("length", "starts"),
    [
        (1, [0]),
        (256, [0]),
        (257, [0, 256]),
        (512, [0, 256]),
        (513, [0, 256, 512]),
        (2048, [0, 256, 512, 1024]),
        (3000, [0, 256, 512, 1024, 2048]),
    ],
)
def test_bins_double_up_to_the_length(length: int, starts: list[int]) -> None:
    assert bin_starts(length) == starts


def test_summary_by_hand() -> None:
    """Two blocks: 4 and 6 nats over 2 tokens each, then 3 and 9 over 3 and 1."""
    table = table_of([[4.0, 3.0], [6.0, 9.0]], [[2, 3], [2, 1]])
    near, far = summarize_positions(table, 300)
    assert (near["first"], near["last"], near["tokens"]) == (0, 255, 4)
    assert (far["first"], far["last"], far["tokens"]) == (256, 299, 4)
    assert near["nats_per_token"] == pytest.approx(2.5)
    assert far["nats_per_token"] == pytest.approx(3.0)
    # u = (d - R w) / sum w is -1/4, 1/4 and -6/4, 6/4; 2 / (2 - 1) times the sum of squares
    assert near["stderr"] == pytest.approx(0.5)
    assert far["stderr"] == pytest.approx(3.0)


def test_the_mean_over_bins_is_the_value_of_the_slice() -> None:
    draw = np.random.default_rng(3)
    tokens = draw.integers(0, 400, (50, 4))
    tokens[:, 0] += 1
    table = table_of((tokens * draw.normal(3, 0.5, (50, 4))).tolist(), tokens.tolist())
    bins = summarize_positions(table, 2048)
    whole = summarize_blocks(table)
    assert sum(one["tokens"] for one in bins) == whole["tokens"]
    sums = math.fsum(one["tokens"] * one["nats_per_token"] for one in bins)
    assert sums / whole["tokens"] == pytest.approx(whole["nats_per_token"], rel=1e-14)


def test_blocks_without_tokens_at_a_position_do_not_count_there() -> None:
    nats, tokens = [[2.0, 5.0]] * 3 + [[3.0, 0.0]] * 3, [[1, 2]] * 3 + [[1, 0]] * 3
    nats[0] = [2.0, 8.0]
    far = summarize_positions(table_of(nats, tokens), 512)[1]
    alone = np.array([8.0, 5.0, 5.0]) / 2
    assert far["nats_per_token"] == pytest.approx(alone.mean())
    assert far["stderr"] == pytest.approx(alone.std(ddof=1) / math.sqrt(3))


def test_where_no_bin_or_one_alone_has_tokens() -> None:
    table = table_of([[2.0, 1.0, 0.0], [2.0, 0.0, 0.0]], [[2, 1, 0], [2, 0, 0]])
    bins = summarize_positions(table, 700)
    assert [one["first"] for one in bins] == [0, 256]
    assert bins[1]["stderr"] is None  # one block
    assert summarize_positions(table_of([[2.0], [3.0]], [[2], [2]]), 128) == []
    near = table_of([[2.0, 0.0], [3.0, 0.0]], [[2, 0], [2, 0]])
    assert summarize_positions(near, 512) == []
    stored = table.drop_columns(["nats_by_position", "tokens_by_position"])
    assert summarize_positions(stored, 700) == []
