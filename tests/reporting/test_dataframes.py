"""`evaluation.load`: the same numbers as the files, in DataFrames."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evaluation
from evaluation.errors import ResultsError
from evaluation.results.table import read_rows
from evaluation.settings.plan import StagePlan
from tests.conftest import ROOT
from tests.workflow.world import World


def test_tables_are_those_of_the_files(reported: dict[str, StagePlan]) -> None:
    folder = reported["second"].results
    results = evaluation.load(folder.parent)
    stage = results.stages["second"]
    assert list(results.stages) == ["first", "second"]
    assert len(stage.summary) == len(read_rows(folder / "summary.parquet"))
    assert len(results.summary) == sum(len(one.summary) for one in results.stages.values())
    stored = json.loads((folder / "bridge_deltas.json").read_text())["deltas"]
    assert list(stage.deltas["delta"]) == [row["delta"] for row in stored]
    assert results.stages["first"].deltas.empty
    assert len(results.deltas) == len(stored)
    assert stage.recommendation is not None
    assert stage.recommendation.stage == "second"
    assert stage.checkpoints == [10, 20, 30, "bridge"]


def test_whole_numbers_stay_whole_where_some_are_missing(
    reported: dict[str, StagePlan], tmp_path: Path
) -> None:
    path = shutil.copytree(reported["second"].results, tmp_path / "second") / "summary.parquet"
    rows = pq.read_table(path).to_pylist()
    bridge = rows[-1] | {"step": None}  # its folder may be called by no number
    pq.write_table(pa.Table.from_pylist([*rows, bridge], schema=pq.read_schema(path)), path)
    stage = evaluation.load(tmp_path).stages["second"]
    assert stage.checkpoints == [10, 20, 30, "bridge"]
    assert list(map(str, stage.summary["step"].dropna().unique())) == ["10", "20", "30", "100"]


def test_items_and_completions(tiny_world: World) -> None:
    stage = evaluation.load(tiny_world.results("stage2")).stages["stage2"]
    blocks = stage.items("tier2", 15)
    summary = json.loads((stage.folder / "by_checkpoint/step_15/tier2_ppl.json").read_text())
    for name, entry in summary["slices"].items():
        own = blocks[blocks["slice"] == name]
        assert own["nats"].sum() / own["tokens"].sum() == pytest.approx(entry["nats_per_token"])
    assert not stage.items("tier3", "bridge").empty
    answers = list(stage.completions(15))
    path = stage.folder / "by_checkpoint/step_15/tier4_sft_native.json"
    prompts = json.loads(path.read_text())["prompts"] if path.exists() else []
    assert [one.id for one in answers if one.tier == "tier4"] == [one["id"] for one in prompts]


def test_what_is_not_there(tiny_world: World, tmp_path: Path) -> None:
    stage = evaluation.load(tiny_world.results("stage2")).stages["stage2"]
    for call, given, said in (
        (stage.items, ("tier9", 15), "no tier 'tier9'"),
        (stage.items, ("tier2", 7), "no checkpoint '7'"),
        (evaluation.load, (tmp_path,), "has no tables of a stage"),
        (evaluation.load, (tmp_path / "none",), "no such folder"),
    ):
        with pytest.raises(ResultsError, match=said):
            call(*given)


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import evaluation, sys; print(sorted({'pandas', 'torch', 'pydantic'} & {*sys.modules}))"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"
