"""A stage whose models are dealt over several GPUs, here of the CPU's memory: the same results."""

from pathlib import Path
from typing import Any

import pytest

from tests.histories.warm import well
from tests.workflow.world import World

SCORE = ("score", "--stage", "stage2", "--step", "5", "15")
"""Two checkpoints in one job; slices, task, probes."""


@pytest.fixture
def world(prefilled_world: World, tmp_path: Path) -> World:
    """The same with results of its own."""
    world = World(tmp_path)
    world.config.write_text(prefilled_world.config.read_text())
    world.change(results=str(world.results()))
    return world


def told(world: World, step: int, name: str) -> Any:
    return world.read("stage2", "by_checkpoint", f"step_{step}", name)


def generations(world: World, step: int) -> str:
    name = "tier4_sft_native_generations.jsonl"
    return world.results("stage2", "by_checkpoint", f"step_{step}", name).read_text()


def step_log(world: World, step: int) -> str:
    return world.results("stage2", "eval_logs", "slurm", f"stage2_step_{step}.log").read_text()


def test_the_same_results_as_on_one(world: World, tmp_path: Path) -> None:
    alone = World(tmp_path / "alone")
    alone.folder.mkdir()
    alone.config.write_text(world.config.read_text())
    alone.change(results=str(alone.results()))
    world.change(scoring={"gpus_per_checkpoint": 2, "device": "cpu"})
    for one in (alone, world):
        well(one.evaluation(*SCORE))
    for step in (5, 15):
        own, spread = told(alone, step, "tier2_ppl.json"), told(world, step, "tier2_ppl.json")
        assert spread["gpus_per_checkpoint"] == [2]
        assert "gpus_per_checkpoint" not in own
        for slices in (spread["slices"], own["slices"]):
            assert all(entry.pop("seconds") > 0 for entry in slices.values())
        assert spread["slices"] == own["slices"]
        assert generations(world, step) == generations(alone, step)

    world.change(scoring={"gpus_per_checkpoint": 1, "device": "cpu"})
    assert world.evaluation(*SCORE).returncode == 0
    assert "loaded" not in step_log(world, 5)
    assert told(world, 5, "tier2_ppl.json")["gpus_per_checkpoint"] == [2]


def test_more_gpus_than_layers(world: World) -> None:
    world.change(scoring={"gpus_per_checkpoint": 3, "device": "cpu"})
    done = world.evaluation("score", "--stage", "stage1", "--step", "10")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "gpus_per_checkpoint: 3, but" in line
    assert line.endswith(
        "has 2 layers (`num_hidden_layers`) to deal over them; set it to 2 or less"
    )
    gate = world.evaluation("doctor", "--stage", "stage1")
    assert gate.returncode == 1
    assert "set it to 2 or less" in gate.stdout
