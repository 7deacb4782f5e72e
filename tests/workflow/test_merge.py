"""A stage lists a mean of checkpoints like any other, and its scores are those of the averaged weights."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from demo.nanotron_writer import import_hf
from evaluation.checkpoints.subjects import stage_steps
from tests.histories.warm import well
from tests.workflow.world import World


def average(sources: list[Path], weights: list[float], target: Path) -> None:
    """Plain arithmetic on Hugging Face folders."""
    shutil.copytree(sources[0], target)
    members = [load_file(source / "model.safetensors") for source in sources]
    mean = {
        name: torch.stack([w * own[name] for w, own in zip(weights, members, strict=True)]).sum(0)
        for name in members[0]
    }
    save_file(mean, target / "model.safetensors", metadata={"format": "pt"})


def test_a_stage_lists_it_as_a_step(world: World) -> None:
    ckpts, tokenizer = world.folder / "ckpts", world.plans["stage2"].tokenizer.name
    done = world.evaluation(
        "merge", str(ckpts / "stage2"), "--last", "2", "--weights", "1", "3",
        "--output", str(ckpts / "means" / "20"),
    )  # fmt: skip
    assert well(done).stdout.split() == [str(ckpts / "means" / "20")]
    sources = [world.folder / "hf" / name for name in ("2-5", "2-15")]
    average(sources, [0.25, 0.75], world.folder / "hf" / "mean")
    import_hf(
        world.folder / "hf" / "mean", ckpts / "means", step=10, tp=2, sequence_length=64,
        tokenizer_name=tokenizer,
    )  # fmt: skip
    world.change_stage("stage2", checkpoints=str(ckpts / "means"), steps="all")
    assert stage_steps(world.plans["stage2"]) == (10, 20)
    for step in ("10", "20"):
        for part in ("score", "collect"):
            well(world.evaluation(part, "--stage", "stage2", "--step", step))
    folders = [world.results("stage2", "by_checkpoint", name) for name in ("step_10", "step_20")]
    for file, column in (("tier2_ppl_units", "nats"), ("tier3_cf_candidates", "logprob")):
        expected, found = (pq.read_table(folder / f"{file}.parquet")[column] for folder in folders)
        assert found.to_pylist() == pytest.approx(expected.to_pylist(), rel=1e-6, abs=1e-5)
    header = json.loads((folders[1] / "tier2_ppl.json").read_text())
    assert (header["step"], header["role"]) == (20, "step")
    assert header["checkpoint"] == str(ckpts / "means" / "20")
