"""The demo's ladder of checkpoints, whose right order is known."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from demo.ladder import LADDER, build_ladder, draw_noise, noisy_weights
from demo.order import disagreements
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.subjects import find_steps
from evaluation.results.table import TABLE_COLUMNS, write_rows
from evaluation.settings.config import Config, load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.stage import Stage
from tests.bridge.folders import make_plans
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model")
    sizes = {"vocab_size": 96, "hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 2}
    heads = dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 3)
    config = LlamaConfig(**sizes, **heads, tie_word_embeddings=True)
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


def test_noise_is_relative_to_each_matrix(model: Path) -> None:
    real = LlamaForCausalLM.from_pretrained(model)
    weights, drawn = real.state_dict(), draw_noise(real)
    for noise in (0.5, 0.1):
        noisy = dict(noisy_weights(real, drawn, noise))
        assert noisy.keys() == weights.keys()
        assert noisy["lm_head.weight"].equal(noisy["model.embed_tokens.weight"])
        for name, weight in weights.items():
            change = float((noisy[name].float() - weight).norm() / weight.norm())
            assert change == pytest.approx(noise if weight.ndim == 2 else 0.0, rel=0.1, abs=0.01)


def test_every_step_of_the_configuration_is_there_and_complete(model: Path, config: Path) -> None:
    build_ladder(config, model)
    for name, plan in plan_stages(load_config(config)).items():
        rungs = [rung for rung in LADDER if rung.stage == name]
        steps = find_steps(Path(plan.stage.checkpoints), plan.stage.steps)
        assert steps == tuple(rung.step for rung in rungs)
        for rung in rungs:
            checkpoint = open_checkpoint(plan.checkpoint(rung.step))
            check_complete(checkpoint)
            assert checkpoint.sequence_length == 128
            (shards,) = {
                len(one.shards) for name, one in checkpoint.parameters.items() if "qkv" in name
            }
            assert shards == rung.tp


def test_last_rung_is_the_model_itself(model: Path, config: Path) -> None:
    build_ladder(config, model)  # what is there stays
    last = LADDER[-1]
    assert last.noise == 0.0
    checkpoint = plan_stages(load_config(config))[last.stage].checkpoint(last.step)
    read = load_model(open_checkpoint(checkpoint), dtype=torch.float32).state_dict()
    for name, weight in load_file(model / "model.safetensors").items():
        torch.testing.assert_close(read[name], weight.to(torch.bfloat16).float(), rtol=0, atol=0)


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """Stage 4: step 100 is noisier than its bridge, step 200 less."""
    made = make_plans(tmp_path)["second"]
    content = made.stage.model_dump() | {"bridge": {"stage": "stage3", "step": 1000}}
    config = Config.model_construct(results=str(tmp_path))
    return replace(made, name="stage4", stage=Stage(**content), config=config)


def write(plan: StagePlan, flags: dict[int, tuple[str, str]], verdict: str, advised: int) -> None:
    rows = []
    for step, pair in flags.items():
        for item, flag in zip(("overall", "web"), pair, strict=True):
            row: dict[str, Any] = dict.fromkeys(TABLE_COLUMNS)
            row |= {
                "stage": "stage4",
                "checkpoint": str(step),
                "step": step,
                "role": "step",
                "n": 1,
            }
            row |= {"tier": "tier2", "item": item, "metric": "nats_per_token", "unit": "nats"}
            row |= {"higher_is_better": False, "primary": item != "overall", "value": 3.0}
            rows.append({**row, "deleted": False, "flag": flag, "verdict": verdict})
    plan.results.mkdir(parents=True)
    write_rows(plan.results, rows)
    (plan.results / "recommendation.json").write_text(json.dumps({"step": advised}))


def test_an_order_that_is_right(plan: StagePlan) -> None:
    write(plan, {100: ("worse", "unclear"), 200: ("better", "better")}, "not met", 200)
    assert disagreements(plan) == []


def test_what_does_not_agree_is_named(plan: StagePlan) -> None:
    write(plan, {100: ("unclear", "better"), 200: ("better", "worse")}, "met", 100)
    assert disagreements(plan) == [
        "stage4 step 100: Tier2's mean is unclear, not worse",
        "stage4 step 100: tier2 web nats_per_token is better",
        "stage4 step 100: a planted regression is met",
        "stage4 step 200: tier2 web nats_per_token is worse",
        "stage4: 100 is named, not 200, which has the least noise",
    ]
