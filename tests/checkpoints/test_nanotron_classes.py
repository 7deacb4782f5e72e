"""A class of Nanotron is one file: with `toy_classes/qwen3.py` in the folder, such a checkpoint is scored."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

from demo.nanotron_writer import write_parameters
from evaluation.checkpoints import nanotron_classes as folder
from evaluation.checkpoints.architecture import parse_architecture
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.nanotron_classes.base import Architecture
from evaluation.checkpoints.nanotron_classes.registry import nanotron_classes
from evaluation.errors import UnsupportedCheckpoint
from tests.checkpoints.nanotron import age, llama

CONFIG = {key: value for key, value in llama().items() if key != "is_llama_config"} | {
    "is_qwen3_config": True
}


@pytest.fixture
def with_toy_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder of classes has a file more."""
    toys = str(Path(__file__).parent / "toy_classes")
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, toys])
    nanotron_classes.cache_clear()
    yield
    monkeypatch.undo()
    nanotron_classes.cache_clear()


def saved(path: Path, **changes: object) -> transformers.PreTrainedModel:
    """Write a random Qwen3 as Nanotron's tensors on two ranks; return it."""
    path.mkdir()
    (path / "model_config.json").write_text(json.dumps(CONFIG | changes))
    arch = architecture(path)
    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=60, hidden_size=32, intermediate_size=24, num_hidden_layers=2, head_dim=8,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
            rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
            tie_word_embeddings=False,
        )
    ).eval().requires_grad_(False)  # fmt: skip
    for name, parameter in model.named_parameters():
        if "norm" in name:
            nn.init.uniform_(parameter, 0.5, 2.0)
    values = model.state_dict()
    sources = arch.parameters()
    joined = {
        name: torch.cat([values[target.name] for target in source.targets])
        for name, source in sources.items()
    }
    write_parameters(path, sources, joined.__getitem__, tp=2)
    age(path)
    return model


def architecture(path: Path) -> Architecture:
    config = json.loads((path / "model_config.json").read_text())
    return parse_architecture(config, None, None, "test")


@pytest.mark.usefixtures("with_toy_class")
def test_its_checkpoint_gives_the_logits_of_transformers(tmp_path: Path) -> None:
    model = saved(tmp_path / "1", norm_kernel="fast")
    checkpoint = open_checkpoint(tmp_path / "1")
    assert describe(checkpoint)["model_class"] == "Qwen3ForCausalLM"
    ids = torch.randint(60, (2, 16), generator=torch.Generator().manual_seed(1))
    logits = load_model(checkpoint)(ids).logits
    assert torch.equal(logits, model(ids).logits)


@pytest.mark.usefixtures("with_toy_class")
def test_its_unknown_keys_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "1")
    (tmp_path / "1/model_config.json").write_text(json.dumps(CONFIG | {"attention_bias": True}))
    with pytest.raises(
        UnsupportedCheckpoint, match="'attention_bias' is True, a key that Nanotron's Qwen3"
    ):
        load_model(open_checkpoint(tmp_path / "1"))


def test_without_the_file_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model_config.json").write_text(json.dumps(CONFIG))
    names = ", ".join(item.name for item in nanotron_classes())
    assert "Llama, Qwen2" in names
    with pytest.raises(
        UnsupportedCheckpoint,
        match=f"is_qwen3_config cannot be represented; Nanotron's {names} can",
    ):
        architecture(tmp_path)
