"""The tiny world: results made before there were measures get them from the store, with no scoring."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluation import protocol
from evaluation.checkpoints.subjects import bridge_subject
from evaluation.dependencies.outdated import Outdated
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stages
from evaluation.settings.tiers import TIERS
from tests.reporting.conftest import command
from tests.reporting.pages import page_data
from tests.workflow.world import World, build_world, stored_scores

MEASURES = [metric.name for metric in TIERS["tier3"].companions]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Stage 2 of the tiny ladder, its files made as they were made by an older version."""
    world = build_world(tmp_path_factory.mktemp("measures") / "world")
    command("prefill", config=world.config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "RESULTS", "results-2")
        command("score", "--stage", "stage2", "--bridge", config=world.config)
        for step in (5, 15):
            command("score", "--stage", "stage2", "--step", str(step), config=world.config)
    return world


def test_nothing_is_scored_again(world: World) -> None:
    before = stored_scores(world.results())
    plans = plan_stages(load_config(world.config))
    bridge = bridge_subject(plans["stage2"], plans)
    outdated = Outdated(plans)
    assert (outdated.score(bridge), outdated.collect(bridge)) == (False, True)
    path = world.results("stage2", "bridge", "tier3_cf.json")
    older = json.loads(path.read_text())
    command("collect", "--stage", "stage2", "--bridge", config=world.config)
    assert not Outdated(plans).collect(bridge)
    assert stored_scores(world.results()) == before
    newer = json.loads(path.read_text())
    for name, value in older["tasks"]["quiz"].items():
        assert newer["tasks"]["quiz"][name] == value  # numbers that there were stay as they were
    table = pq.read_table(path.with_name("tier3_cf_candidates.parquet"))
    for name in MEASURES:
        values = [value for value in table[name].to_pylist() if value is not None]
        assert len(values) == newer["tasks"]["quiz"]["items"]["used"]
        assert newer["tasks"]["quiz"][name] == pytest.approx(np.mean(values))
        assert newer["overall"][name] == newer["tasks"]["quiz"][name]


def test_measures_reach_every_file(world: World) -> None:
    for which in (("--bridge",), ("--step", "5"), ("--step", "15")):
        command("collect", "--stage", "stage2", *which, config=world.config)
    for step in ("5", "15"):
        command("deltas", "--stage", "stage2", "--step", step, config=world.config)
    command("tables", "--stage", "stage2", config=world.config)
    stage = world.results("stage2")
    rows: list[dict[str, Any]] = pq.read_table(stage / "summary.parquet").to_pylist()
    page = page_data(stage / "report.html")
    for name in MEASURES:
        own = [row for row in rows if row["metric"] == name]
        assert {(row["role"], row["item"]) for row in own} == {
            (role, item) for role in ("step", "bridge") for item in ("quiz", "overall")
        }
        for row in own:
            assert row["low"] < row["value"] < row["high"]
            if row["role"] == "step":
                assert row["delta_low"] < row["delta"] < row["delta_high"]
        assert any(one["metric"] == name for one in page["series"])
        assert page["tiers"]["tier3"]["metrics"][name]["lower"] == (name == MEASURES[0])
    record = json.loads((stage / ".made" / "tables.json").read_text())
    assert {"task_quality.csv", "task_quality.json"} <= set(record["files"])
    quality = json.loads(Path(stage / "task_quality.json").read_text())
    assert {row["item"] for row in quality["rows"]} == {"text", "quiz"}
