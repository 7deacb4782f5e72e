"""Paired deltas of the loss by position are those of blocks of text; no verdict hears of them."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.breakdowns import Breakdowns
from evaluation.errors import BridgeError
from evaluation.files import write_parquet
from evaluation.metrics.positions import TOKENS
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import read_results
from tests.bridge.folders import OBJECTIVE, make_plans, write_stage_of
from tests.bridge.paired import of_text


def test_deltas_by_position(tmp_path: Path) -> None:
    kinds = {"tiers": ("slices",), "objective": OBJECTIVE[1:], "sequence_length": 1024}
    plan = make_plans(tmp_path, **kinds)["second"]
    write_stage_of(plan, {10: {"nats": 2.98}})
    content = StepDeltas.read(plan.step_folder(10) / "bridge_deltas.json")
    rows = [SimpleNamespace(**row) for row in content.by_position]
    assert [(row.item, row.first, row.last) for row in rows] == [
        (item, *ends) for item in ("web", "code") for ends in ((0, 255), (256, 511), (512, 1023))
    ]
    folders = plan.step_folder(10), plan.bridge_folder
    sides = [read_results(folder, plan.tiers) for folder in folders]
    for number, row in enumerate(rows):
        units = [side.tiers["tier2"].items[row.item].units for side in sides]
        one, (ours, theirs) = number % 3, [unit.positions for unit in units]
        tokens = ours.tokens[:, one]
        known = of_text(ours.nats[:, one] - theirs.nats[:, one], tokens)
        assert (row.delta, row.low, row.high) == (known.value, known.low, known.high)
        assert row.value - row.bridge_value == pytest.approx(row.delta)
        assert (row.n, row.tokens) == (len(tokens), tokens.sum())
    path = plan.bridge_folder / "tier2_ppl_units.parquet"
    table = pq.read_table(path)
    (first, second, *others), *blocks = table[TOKENS].to_pylist()
    moved = pa.array([[first - 1, second + 1, *others], *blocks])
    place = table.column_names.index(TOKENS)
    write_parquet(path, table.set_column(place, TOKENS, moved))
    with pytest.raises(BridgeError, match="different numbers of tokens at the same positions"):
        _ = Breakdowns(sides[0], read_results(plan.bridge_folder, plan.tiers)).by_position
