"""A ladder of checkpoints from a tiny model."""

from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from demo.ladder import LADDER, SLOW, build_ladder, noisy_weights
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.subjects import find_steps
from evaluation.settings.config import load_config
from evaluation.settings.plan import plan_stages
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model")
    config = LlamaConfig(
        vocab_size=96,
        hidden_size=24,
        intermediate_size=36,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's configuration with its checkpoints, and one slice, elsewhere."""
    folder = tmp_path_factory.mktemp("ladder")
    content = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    slices = {"slices": {"text": {"files": ["text.txt"]}}}
    (folder / "one.yaml").write_text(yaml.safe_dump(slices))
    for name, stage in content["stages"].items():
        stage |= {"checkpoints": str(folder / name), "suites": ["one"], "objective": []}
    path = folder / "demo.yaml"
    path.write_text(yaml.safe_dump({**content, "suites": str(folder)}, sort_keys=False))
    return path


def distance(model: Path, noise: float) -> float:
    real = load_file(model / "model.safetensors")
    noisy = dict(noisy_weights(model / "model.safetensors", noise))
    assert noisy.keys() == real.keys()
    return sum(float((noisy[name].float() - real[name]).norm()) for name in real)


def test_less_noise_is_nearer_to_the_model(model: Path) -> None:
    distances = [distance(model, noise) for noise in (0.2, 0.1, 0.05, 0.0)]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == pytest.approx(2 * distances[1], rel=0.02)


def test_noise_is_relative_to_each_matrix(model: Path) -> None:
    real = load_file(model / "model.safetensors")
    for name, noisy in noisy_weights(model / "model.safetensors", 0.5):
        change = (noisy.float() - real[name]).norm() / real[name].norm()
        assert float(change) == pytest.approx(0.5 if noisy.ndim == 2 else 0.0, abs=0.1)


def test_every_step_of_the_configuration_is_there_and_complete(model: Path, config: Path) -> None:
    build_ladder(config, model)
    stages = load_config(config).stages
    for name in {rung.stage for rung in LADDER}:
        stage = stages[name]
        rungs = [rung for rung in LADDER if rung.stage == name]
        steps = find_steps(Path(stage.checkpoints), stage.steps)
        assert steps == tuple(rung.step for rung in rungs)
        for rung in rungs:
            checkpoint = open_checkpoint(Path(stage.checkpoints) / str(rung.step))
            check_complete(checkpoint)
            assert (checkpoint.step, checkpoint.sequence_length) == (rung.step, 256)
            assert checkpoint.training_config is not None
            assert checkpoint.training_config["parallelism"]["tp"] == rung.tp


def test_the_slow_run_is_where_the_ladder_was_a_step_before(model: Path, config: Path) -> None:
    build_ladder(config, model)
    plans = plan_stages(load_config(config))
    slow = plans["stage2_slow"]
    assert find_steps(Path(slow.stage.checkpoints), slow.stage.steps) == tuple(SLOW)
    noise = {(rung.stage, rung.step): rung.noise for rung in LADDER}
    for step, (stage, its_step) in SLOW.items():
        same = open_checkpoint(plans[stage].checkpoint(its_step))
        assert open_checkpoint(slow.checkpoint(step)).identity == same.identity
        assert noise[stage, its_step] > noise["stage2", step]


def test_last_rung_is_the_model_itself(model: Path, config: Path) -> None:
    build_ladder(config, model)  # what is there stays
    last = LADDER[-1]
    assert last.noise == 0.0
    folder = Path(load_config(config).stages[last.stage].checkpoints) / str(last.step)
    read = load_model(open_checkpoint(folder), dtype=torch.float32, device="cpu").state_dict()
    for name, weight in load_file(model / "model.safetensors").items():
        torch.testing.assert_close(read[name], weight.to(torch.bfloat16).float(), rtol=0, atol=0)
