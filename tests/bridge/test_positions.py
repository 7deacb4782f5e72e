"""Paired deltas of the loss by position: peers, what is refused, and that no verdict hears of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.breakdowns import Breakdowns
from evaluation.errors import BridgeError
from evaluation.files import write_parquet
from evaluation.metrics.positions import TOKENS
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import Results, read_results
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import OBJECTIVE, make_plans, write_stage_of
from tests.bridge.paired import of_text

LENGTH = 1024
TABLE = "tier2_ppl_units.parquet"


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """A stage with one step and its bridge."""
    options: Any = {"objective": OBJECTIVE[1:], "sequence_length": LENGTH}
    plan = make_plans(tmp_path, tiers=("slices",), **options)["second"]
    write_stage_of(plan, {10: {"nats": 2.98}})
    return plan


def results(plan: StagePlan) -> list[Results]:
    return [read_results(one, plan.tiers) for one in (plan.step_folder(10), plan.bridge_folder)]


def edit(path: Path, **columns: Any) -> None:
    """Replace columns of a table; None removes one."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, pa.array(values))
    write_parquet(path, table)


def test_deltas_are_those_of_blocks_of_text(plan: StagePlan) -> None:
    content = StepDeltas.read(plan.step_folder(10) / "bridge_deltas.json")
    rows = [SimpleNamespace(**row) for row in content.by_position]
    assert [(row.item, row.first, row.last) for row in rows] == [
        (item, *ends) for item in ("web", "code") for ends in ((0, 255), (256, 511), (512, 1023))
    ]
    items = [side.tiers["tier2"].items for side in results(plan)]
    for number, row in enumerate(rows):
        one, (ours, theirs) = number % 3, [side[row.item].units.positions for side in items]
        tokens = ours.tokens[:, one]
        known = of_text(ours.nats[:, one] - theirs.nats[:, one], tokens)
        assert (row.delta, row.low, row.high) == (known.value, known.low, known.high)
        assert row.value - row.bridge_value == pytest.approx(row.delta)
        assert (row.n, row.tokens) == (len(tokens), tokens.sum())
    metric = "delta_nats_per_token"
    whole = {row["item"]: row["delta"] for row in content.deltas if row["metric"] == metric}
    for item in ("web", "code"):
        bins = [row for row in rows if row.item == item]
        mean = sum(row.tokens * row.delta for row in bins) / sum(row.tokens for row in bins)
        assert mean == pytest.approx(whole[item], rel=1e-10)


def test_other_tokens_at_a_position_are_refused(plan: StagePlan) -> None:
    path = plan.bridge_folder / TABLE
    tokens = pq.read_table(path)[TOKENS].to_pylist()
    tokens[0] = [tokens[0][0] - 1, tokens[0][1] + 1, tokens[0][2]]
    edit(path, **{TOKENS: tokens})
    with pytest.raises(BridgeError, match="different numbers of tokens at the same positions"):
        _ = Breakdowns(*results(plan)).by_position
