"""Hugging Face folders beside Nanotron's."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPTNeoXConfig, LlamaConfig

from evaluation.checkpoints.agreement import check_agreement, check_tokenizer_fits
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from tests.checkpoints.test_write import SIZES, logits, save_model
from tests.prefill.plans import make_plan

NEOX = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("config", [LlamaConfig(**SIZES), GPTNeoXConfig(**NEOX)])
def test_loads_as_transformers_does(
    tmp_path: Path, dtype: torch.dtype, config: LlamaConfig | GPTNeoXConfig
) -> None:
    model = save_model(tmp_path, config, dtype)
    checkpoint = open_checkpoint(tmp_path)
    check_complete(checkpoint)
    assert checkpoint.kind == "huggingface"
    assert checkpoint.dtype == str(dtype).removeprefix("torch.")
    assert checkpoint.vocab_size == config.vocab_size
    loaded = load_model(checkpoint)
    assert loaded.dtype == dtype
    assert not loaded.training
    assert not any(value.requires_grad for value in loaded.parameters())
    assert torch.equal(logits(loaded), logits(model))


def test_described(tmp_path: Path) -> None:
    model = save_model(tmp_path, LlamaConfig(**SIZES))
    facts = describe(open_checkpoint(tmp_path))
    json.dumps(facts)
    assert facts["parameters"] == sum(value.numel() for value in model.parameters())
    assert facts["model_class"] == "LlamaForCausalLM"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_model(tmp_path, LlamaConfig(**SIZES)).save_pretrained(tmp_path, max_shard_size="20KB")
    (tmp_path / "model.safetensors").unlink()
    return tmp_path


def test_sharded_by_its_index(sharded: Path) -> None:
    checkpoint = open_checkpoint(sharded)
    assert describe(checkpoint)["files"] > 1
    load_model(checkpoint)


def test_a_missing_shard_is_named(sharded: Path) -> None:
    shard = sorted(sharded.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(IncompleteCheckpoint, match=shard.name):
        open_checkpoint(sharded)


def test_a_truncated_shard_is_named(sharded: Path) -> None:
    shard = sorted(sharded.glob("model-*.safetensors"))[0]
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(IncompleteCheckpoint, match=shard.name):
        open_checkpoint(sharded)


def test_a_shard_that_lacks_or_adds_a_tensor(sharded: Path) -> None:
    shard = sorted(sharded.glob("model-*.safetensors"))[0]
    tensors = load_file(shard)
    save_file({**tensors, "foreign": torch.ones(1)}, shard)
    with pytest.raises(CheckpointError, match="foreign"):
        open_checkpoint(sharded)
    tensors.popitem()
    save_file(tensors or {"foreign": torch.ones(1)}, shard)
    with pytest.raises(IncompleteCheckpoint, match="lacks"):
        open_checkpoint(sharded)


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": {}}', '{"weight_map": {"a": "../b"}}'])
def test_a_broken_index(sharded: Path, text: str) -> None:
    (sharded / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"index\.json"):
        open_checkpoint(sharded)


def test_a_model_of_another_configuration(tmp_path: Path) -> None:
    save_model(tmp_path, LlamaConfig(**SIZES))
    path = tmp_path / "config.json"
    for key, value in (("num_hidden_layers", 3), ("num_hidden_layers", 1), ("hidden_size", 36)):
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**config, key: value}))
        with pytest.raises(CheckpointError, match=r"config\.json|cannot load"):
            load_model(open_checkpoint(tmp_path))
        path.write_text(json.dumps(config))


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 5}')
    with pytest.raises(IncompleteCheckpoint, match=r"model\.safetensors"):
        open_checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UnsupportedCheckpoint, match="never opened"):
        open_checkpoint(tmp_path)


def test_unknown_kinds_and_remote_code(tmp_path: Path) -> None:
    save_model(tmp_path, LlamaConfig(**SIZES))
    config = json.loads((tmp_path / "config.json").read_text())
    changed = {**config, "model_type": "unheard", "auto_map": {"AutoConfig": "x.Config"}}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    with pytest.raises(CheckpointError, match="cannot load"):
        load_model(open_checkpoint(tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": "wide"},
        {"num_attention_heads": 7},
        {"num_attention_heads": 0},
        {"rope_parameters": 5},
        {"rope_parameters": {"rope_type": "unheard"}},
        {"hidden_act": "unheard"},
        {"num_key_value_heads": 5},
        {"pad_token_id": 1000},
        {"vocab_size": "60"},
        {"quantization_config": {"quant_method": "gptq"}},
    ],
)
def test_impossible_configurations_give_one_sentence(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    save_model(tmp_path, LlamaConfig(**SIZES))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(CheckpointError) as error:
        load_model(open_checkpoint(tmp_path))
    assert "\n" not in str(error.value)


def test_keys_that_the_class_does_not_have_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = save_model(tmp_path, LlamaConfig(**SIZES))
    load_model(open_checkpoint(tmp_path))
    assert "leaves it out" not in caplog.text
    path = tmp_path / "config.json"
    more = {
        "sliding_window": 4,
        "layer_types": ["sliding_attention"] * 2,
        "residual_multiplier": 0.2,
        "qk_norm": False,
    }
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))
    loaded = load_model(open_checkpoint(tmp_path))
    assert (
        "LlamaConfig does not have sliding_window, layer_types, residual_multiplier and"
        in caplog.text
    )
    assert torch.equal(logits(loaded), logits(model))
    loaded.save_pretrained(tmp_path / "again")
    written = json.loads((tmp_path / "again/config.json").read_text())
    assert not {"sliding_window", "layer_types"} & written.keys()


FITS = [
    ("as many positions", {"max_position_embeddings": 16}, None),
    ("too few", {"max_position_embeddings": 15}, r"`max_position_embeddings` is 15.*sequence_length: 15"),
    ("too few by an old name", {"n_positions": 8}, "`n_positions` is 8"),
    ("of the text of a larger model", {"text_config": {"max_position_embeddings": 4, "vocab_size": 60}},
     "`max_position_embeddings` is 4"),
    ("not told", {"max_position_embeddings": None}, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"), [one[1:] for one in FITS], ids=[one[0] for one in FITS]
)
def test_the_sequence_fits_its_positions(
    tmp_path: Path, changes: dict[str, object], said: str | None
) -> None:
    save_model(tmp_path, LlamaConfig(**SIZES))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    plan = make_plan(tmp_path / "cache", Path("some/tokenizer"), sequence_length=16)
    checkpoint = open_checkpoint(tmp_path)
    check_tokenizer_fits(checkpoint, 60)
    with pytest.raises(CheckpointError, match="60 rows, but the tokenizer uses ids up to 60"):
        check_tokenizer_fits(checkpoint, 61)
    if said is None:
        check_agreement(plan, checkpoint)
        return
    with pytest.raises(CheckpointError, match=said):
        check_agreement(plan, checkpoint)
