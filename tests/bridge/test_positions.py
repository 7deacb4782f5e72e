"""Paired deltas of the loss by position: peers, what is refused, and that no verdict hears of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from evaluation.bridge.breakdowns import position_deltas, position_values
from evaluation.bridge.statistics import paired_ratio
from evaluation.bridge.write import write_deltas
from evaluation.errors import BridgeError, ResultsError
from evaluation.files import write_parquet
from evaluation.metrics.positions import NATS, TOKENS, Positions
from evaluation.results.deltas_file import read_step_deltas
from evaluation.results.kinds import Blocks, NatsItem
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import OBJECTIVE, make_plans, write_side, write_stage_of

LENGTH = 1024
TABLE = "tier2_ppl_blocks.parquet"


def sides(root: Path, **sizes: Any) -> StagePlan:
    """A stage with one step and its bridge."""
    plan = make_plans(root, tiers=("slices",), objective=OBJECTIVE[1:], sequence_length=LENGTH)[
        "second"
    ]
    write_stage_of(plan, {10: {"nats": 2.98, **sizes}}, **sizes)
    return plan


def deltas_of(plan: StagePlan) -> list[dict[str, Any]]:
    ours, bridge = (
        read_results(one, plan.tiers) for one in (plan.step_folder(10), plan.bridge_folder)
    )
    return list(position_deltas(ours, bridge))


def positions_in(folder: Path, plan: StagePlan, name: str) -> Positions:
    item = read_results(folder, plan.tiers).tiers["tier2"].items[name]
    assert isinstance(item, NatsItem)
    return item.blocks.positions


def edit(path: Path, **columns: Any) -> None:
    """Replace columns of a table; None removes one."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, pa.array(values))
    write_parquet(path, table)


def test_deltas_are_those_of_blocks_of_text(tmp_path: Path) -> None:
    plan = sides(tmp_path)
    rows = read_step_deltas(write_deltas(plan, 10)).by_position
    assert [(row.item, row.first, row.last) for row in rows] == [
        (item, *ends) for item in ("web", "code") for ends in ((0, 255), (256, 511), (512, 1023))
    ]
    for number, row in enumerate(rows):
        ours, theirs = (
            positions_in(folder, plan, row.item)
            for folder in (plan.step_folder(10), plan.bridge_folder)
        )
        one, tokens = number % 3, ours.tokens[:, number % 3]
        known = paired_ratio(ours.nats[:, one], theirs.nats[:, one], tokens)
        assert (row.delta, row.low, row.high) == (known.value, known.low, known.high)
        assert row.value - row.bridge_value == pytest.approx(row.delta)
        assert (row.n, row.tokens) == (len(tokens), tokens.sum())


def test_a_few_blocks_of_equal_size_are_a_paired_t_test() -> None:
    """By scipy, of the mean and of its difference; with so few no dependence is looked for."""
    draw = np.random.default_rng(5)
    ours, theirs = draw.normal(3, 0.2, (7, 2)), draw.normal(3, 0.2, (7, 2))
    tokens = np.full((7, 2), 50.0)
    for one, peer in enumerate(stats.ttest_rel(ours, theirs).confidence_interval(0.95)):
        known = [paired_ratio(ours[:, b] * 50, theirs[:, b] * 50, tokens[:, b]) for b in range(2)]
        assert [(k.low, k.high)[one] for k in known] == pytest.approx(peer)
    positions = Positions(ours * 50, tokens)
    blocks = Blocks(
        ids=np.arange(7),
        nats=ours.sum(1) * 50,
        tokens=tokens.sum(1),
        bytes=tokens.sum(1),
        positions=positions,
    )
    found = position_values(blocks, 512)
    low, high = stats.ttest_1samp(ours, 0).confidence_interval(0.95)
    assert [(one.estimate.low, one.estimate.high) for one in found] == [
        pytest.approx(pair) for pair in zip(low, high, strict=True)
    ]


def test_the_mean_over_bins_is_the_delta_of_the_slice(tmp_path: Path) -> None:
    content = read_step_deltas(write_deltas(sides(tmp_path), 10))
    for item in ("web", "code"):
        whole = next(
            row
            for row in content.deltas
            if (row.item, row.metric) == (item, "delta_nats_per_token")
        )
        bins = [row for row in content.by_position if row.item == item]
        mean = sum(row.tokens * row.delta for row in bins) / sum(row.tokens for row in bins)
        assert mean == pytest.approx(whole.delta, rel=1e-10)


def test_no_verdict_and_no_correction_hears_of_them(tmp_path: Path) -> None:
    plan = sides(tmp_path)
    with_bins = json.loads(write_deltas(plan, 10).read_text())
    for folder in (plan.step_folder(10), plan.bridge_folder):
        edit(folder / TABLE, nats_by_position=None, tokens_by_position=None)
    without = json.loads(write_deltas(plan, 10).read_text())
    assert with_bins.pop("by_position")
    assert without.pop("by_position") == []
    assert with_bins == without


def test_a_side_without_positions_has_no_deltas_by_them(tmp_path: Path) -> None:
    plan = sides(tmp_path)
    edit(plan.bridge_folder / TABLE, nats_by_position=None, tokens_by_position=None)
    assert deltas_of(plan) == []


def test_short_sequences_have_none(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=("slices",))["second"]
    write_side(plan.bridge_folder, plan, step=100)
    write_side(plan.step_folder(10), plan, step=10, seed=10)
    assert deltas_of(plan) == []


def test_other_tokens_at_a_position_are_refused(tmp_path: Path) -> None:
    plan = sides(tmp_path)
    path = plan.bridge_folder / TABLE
    tokens = pq.read_table(path)[TOKENS].to_pylist()
    tokens[0] = [tokens[0][0] - 1, tokens[0][1] + 1, tokens[0][2]]
    edit(path, **{TOKENS: tokens})
    with pytest.raises(BridgeError, match="different numbers of tokens at the same positions"):
        deltas_of(plan)


def halved(rows: list[list[float]]) -> list[list[float]]:
    return [[value / 2 for value in row] for row in rows]


@pytest.mark.parametrize(
    ("column", "change"),
    [
        (NATS, halved),
        (NATS, lambda rows: [row[:2] for row in rows]),
        (NATS, lambda rows: [[None, *row[1:]] for row in rows]),
        (NATS, lambda rows: [None, *rows[1:]]),
        (TOKENS, lambda rows: [[n + 1 for n in row] for row in rows]),
        (TOKENS, lambda rows: [[-1, row[0] + row[1] + 1, row[2]] for row in rows]),
        (TOKENS, lambda _: None),
    ],
)
def test_positions_that_are_not_those_of_the_blocks_are_refused(
    tmp_path: Path, column: str, change: Any
) -> None:
    path = sides(tmp_path).bridge_folder / TABLE
    edit(path, **{column: change(pq.read_table(path)[column].to_pylist())})
    with pytest.raises(ResultsError, match="'web' by position are not those of its blocks; remove"):
        read_results(path.parent, ("tier2",))


def test_nats_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    path = sides(tmp_path).bridge_folder / TABLE
    rows = pq.read_table(path)[NATS].to_pylist()
    rows[0][1] = float("nan")
    edit(path, **{NATS: rows})
    with pytest.raises(ResultsError, match="'nats_by_position' has NaN or infinite values"):
        read_results(path.parent, ("tier2",))
