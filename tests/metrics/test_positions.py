"""The loss by position, by hand and by its definition."""

import math

import numpy as np
import pyarrow as pa
import pytest

from evaluation.metrics.perplexity import summarize_blocks
from evaluation.metrics.positions import bin_starts, summarize_positions


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


def test_no_token_there_no_bin() -> None:
    table = table_of([[2.0, 1.0, 0.0], [2.0, 0.0, 0.0]], [[2, 1, 0], [2, 0, 0]])
    bins = summarize_positions(table, 700)
    assert [one["first"] for one in bins] == [0, 256]
    assert bins[1]["stderr"] is None  # one block


def test_one_bin_compares_nothing() -> None:
    assert summarize_positions(table_of([[2.0], [3.0]], [[2], [2]]), 128) == []
    near = table_of([[2.0, 0.0], [3.0, 0.0]], [[2, 0], [2, 0]])
    assert summarize_positions(near, 512) == []


def test_a_table_stored_without_positions_has_none() -> None:
    table = table_of([[2.0, 1.0]], [[2, 1]])
    stored = table.drop_columns(["nats_by_position", "tokens_by_position"])
    assert summarize_positions(stored, 512) == []
