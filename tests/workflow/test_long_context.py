"""A stage on longer sequences than its bridge was trained on, with another rotary base."""

import json
from pathlib import Path

import pytest
import yaml

from tests.histories.warm import well
from tests.workflow.world import World, build_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tiny world, whose stage 2 has 128 tokens a sequence, in place of 64."""
    world = build_world(tmp_path_factory.mktemp("long"))
    for step in (5, 15):
        _lengthen(world.folder / "ckpts" / "stage2" / str(step))
    world.change_stage("stage2", sequence_length=128, suites=["base"], steps=[15])
    return world


def _lengthen(folder: Path) -> None:
    own = json.loads((folder / "model_config.json").read_text())
    (folder / "model_config.json").write_text(json.dumps(own | {"rope_theta": 500000.0}))
    training = yaml.safe_load((folder / "config.yaml").read_text())
    training["model"]["model_config"]["rope_theta"] = 500000.0
    training["tokens"]["sequence_length"] = 128
    (folder / "config.yaml").write_text(yaml.safe_dump(training))


def test_the_bridge_is_scored_at_the_stage_s_length_and_the_difference_is_stated(
    world: World,
) -> None:
    for arguments in (["prefill"], ["stage2"]):
        well(world.snakemake(*arguments))
    lengths = {}
    for name in ("by_checkpoint/step_15", "bridge"):
        found = world.read("stage2", *name.split("/"), "tier2_ppl.json")
        lengths[name] = (
            found["sequence_length"],
            found["trained_sequence_length"],
            found["rotary_embedding"],
        )
    assert lengths == {
        "by_checkpoint/step_15": (128, 128, "rope_theta 500,000"),
        "bridge": (128, 64, "rope_theta 10,000"),
    }
    notes = world.read("stage2", "by_checkpoint", "step_15", "bridge_deltas.json")["notes"]
    assert notes == [
        "trained on sequences of 128 tokens, the bridge on 64",
        "positions by rope_theta 500,000, those of the bridge by rope_theta 10,000",
    ]
    log = world.results("stage2", "eval_logs", "slurm", "stage2_bridge.log").read_text()
    assert "as stage2's bridge it is scored on 128" in log


def test_a_step_trained_on_shorter_sequences_is_refused(world: World) -> None:
    world.change_stage("stage1", sequence_length=128)
    done = world.evaluation("doctor", "--config", str(world.config))
    assert "trained on sequences of 64 tokens, but stage1 scores 128" in done.stdout + done.stderr
    assert "stage2: bridge" not in done.stdout
