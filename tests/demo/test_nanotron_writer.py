"""A written checkpoint is the model that it was made from, in shards exactly as Nanotron writes them."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import LlamaConfig, Qwen2Config

from demo.nanotron_writer import import_hf, write_parameters
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.shards import read_parameters
from tests.checkpoints.huggingface import SIZES, logits, save_model
from tests.checkpoints.test_reference import INDEX

CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "llama tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama interpolated": LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0,
        "rope_theta": 5000.0} ),
    "qwen2": Qwen2Config(**SIZES),
    "qwen2 tied": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen2 sliding": Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=3, max_window_layers=0 ),
}  # fmt: skip


@pytest.fixture
def hf(tmp_path: Path) -> Path:
    """A Llama as a Hugging Face folder."""
    save_model(tmp_path / "hf")
    return tmp_path / "hf"


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("tp", [1, 2, 3, 4])
def test_round_trip_is_exact(tmp_path: Path, name: str, tp: int) -> None:
    model = save_model(tmp_path / "hf", CONFIGS[name])
    written = import_hf(tmp_path / "hf", tmp_path / "ckpts", tp=tp, step=30)
    assert written == tmp_path / "ckpts" / "30"
    checkpoint = open_checkpoint(tmp_path / "ckpts")
    check_complete(checkpoint)
    again = load_model(checkpoint)
    assert torch.equal(logits(again), logits(model))
    sharded = {*written.rglob("*_tp-rank-*")}
    assert sharded
    assert sharded == {*written.rglob(f"*_tp-rank-*-of-{tp}.safetensors")}


def test_records(tmp_path: Path) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES), torch.bfloat16)
    import_hf(
        tmp_path / "hf", tmp_path / "c", tp=2, step=5, sequence_length=32, tokenizer_name="my/tok"
    )
    checkpoint = open_checkpoint(tmp_path / "c" / "5")
    assert checkpoint.dtype == "bfloat16"
    assert checkpoint.sequence_length == 32
    assert checkpoint.tokenizer_name == "my/tok"
    training = yaml.safe_load((checkpoint.path / "config.yaml").read_text())
    assert training["model"]["model_config"] == checkpoint.model_config
    assert training["parallelism"]["tp"] == 2
    metadata = json.loads((checkpoint.path / "checkpoint_metadata.json").read_text())
    assert (metadata["tp"], metadata["metas"]["last_train_step"]) == (2, 5)


def test_vocabulary_is_padded_to_tp(tmp_path: Path) -> None:
    model = save_model(tmp_path / "hf", LlamaConfig(**{**SIZES, "vocab_size": 61}))
    import_hf(tmp_path / "hf", tmp_path / "c", tp=4)
    checkpoint = open_checkpoint(tmp_path / "c")
    assert checkpoint.vocab_size == 64
    ours = logits(load_model(checkpoint))
    assert torch.equal(ours[..., :61], logits(model))
    assert not ours[..., 61:].any()


def merged(folder: Path) -> dict[str, torch.Tensor]:
    """Whole tensors, joined plainly from files and slices."""
    tensors = {}
    for name, parameter in read_parameters(folder).items():
        whole = torch.full(parameter.shape, torch.nan)
        for shard in parameter.shards:
            data = load_file(shard.path)["data"].float()
            for pair in shard.pairs:
                local = tuple(slice(*pair) for pair in pair.local)
                whole[tuple(slice(*pair) for pair in pair.whole)] = data[local]
        tensors[name] = whole
    return tensors


@pytest.mark.parametrize("name", [name for name in sorted(INDEX) if INDEX[name]["tp"] == 2])
def test_shards_equal_those_of_nanotron(shared: Path, tmp_path: Path, name: str) -> None:
    """File by file: names, data, and what the metadata says."""
    checkpoint = open_checkpoint(shared / "fixtures" / "nanotron" / name)
    expected = checkpoint.architecture.parameters()
    write_parameters(tmp_path, expected, merged(checkpoint.path).__getitem__, tp=2)
    theirs = sorted(checkpoint.path.glob("model/**/*.safetensors"))
    assert len(theirs) == len(list(tmp_path.glob("model/**/*.safetensors")))
    for path in theirs:
        with (
            safe_open(path, framework="pt") as one,
            safe_open(tmp_path / path.relative_to(checkpoint.path), framework="pt") as other,
        ):
            assert torch.equal(one.get_tensor("data"), other.get_tensor("data"))
            assert plain(one.metadata()) == plain(other.metadata())


def plain(metadata: dict[str, str] | None) -> dict[str, Any]:
    values: dict[str, Any] = dict(metadata or {})
    if values:
        shape = values["unsharded_shape"].replace("np.int64", "")
        values["unsharded_shape"] = ast.literal_eval(shape)
    return values
