"""Keys of a configuration that are not known, files that do not say the same, and one that is missing."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints.architecture import parse_architecture
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError
from tests.checkpoints.damage import training
from tests.checkpoints.nanotron import TRAINING, Config, forward, llama, make_checkpoint, moe, qwen2
from tests.tables import cases


@pytest.mark.parametrize(
    "keys", cases("checkpoints/tables", "a_key_that_changes_nothing_is_left_out")
)
def test_a_key_that_changes_nothing_is_left_out(keys: dict[str, Any]) -> None:
    found = parse_architecture(llama(**keys), False, None, "here")
    assert found == parse_architecture(llama(), False, None, "here")


def with_both(folder: Path, config: Config, trained: Config) -> Path:
    make_checkpoint(folder / "7", config)
    training(folder / "7", model=TRAINING["model"] | {"model_config": trained})
    return folder / "7"


@pytest.mark.parametrize(
    ("config", "trained", "named"),
    [
        (llama(rope_theta=500_000.0), llama(), "`rope_theta` is 500000.0, but config.yaml has 1000.0"),
        (qwen2(moe_config=moe()), qwen2(moe_config=moe(top_k=1)), "`moe_config` is "),
        (llama(), qwen2(), "`class` is 'Llama', but config.yaml has 'Qwen2'"),
    ],
)  # fmt: skip
def test_two_files_that_contradict_each_other(
    tmp_path: Path, config: Config, trained: Config, named: str
) -> None:
    folder = with_both(tmp_path, config, trained)
    with pytest.raises(CheckpointError, match=f"model_config.json: {named}.* changed on purpose"):
        load_model(open_checkpoint(folder))
    training(folder, model=TRAINING["model"] | {"model_config": config})
    assert open_checkpoint(folder).architecture.hidden_size == 32


@pytest.mark.parametrize("trained", cases("checkpoints/tables", "two_files_that_say_the_same"))
def test_two_files_that_say_the_same(tmp_path: Path, trained: Config) -> None:
    folder = with_both(tmp_path, llama(), llama(**trained))
    assert open_checkpoint(folder).architecture.rope_theta == 1000


IDS = torch.tensor([3, 17, 42, 5, 9, 59, 0, 21])


@pytest.mark.parametrize("use_mup", [False, True])
def test_mup_as_it_is_said(tmp_path: Path, use_mup: bool) -> None:
    tensors = make_checkpoint(tmp_path / "7", llama(), training=None)
    with pytest.raises(CheckpointError, match=r"config\.yaml is missing.*muP"):
        load_model(open_checkpoint(tmp_path / "7"))
    model = load_model(open_checkpoint(tmp_path / "7", use_mup=use_mup), dtype=torch.float64)
    expected = forward(tensors, llama(), IDS, mup=use_mup)
    assert torch.allclose(model(IDS[None]).logits[0], expected, atol=1e-5, rtol=1e-4)
    other = forward(tensors, llama(), IDS, mup=not use_mup)
    assert float((other - expected).norm() / expected.norm()) > 0.01


def test_what_is_assumed_is_part_of_the_identity(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", llama(), training=None)
    said = {
        Contents().identity(open_checkpoint(tmp_path / "7", use_mup=one))
        for one in (None, True, False)
    }
    assert len(said) == 3
    training(tmp_path / "7")
    known = Contents().identity(open_checkpoint(tmp_path / "7"))
    assert Contents().identity(open_checkpoint(tmp_path / "7", use_mup=False)) == known
    assert open_checkpoint(tmp_path / "7", use_mup=True).use_mup is False
