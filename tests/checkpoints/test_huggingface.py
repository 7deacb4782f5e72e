"""Hugging Face folders: loaded as transformers does, or refused in one sentence that names the file."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from tests.checkpoints.damage import in_place, text
from tests.checkpoints.huggingface import NEOX, SIZES, logits, save_model
from tests.prefill.plans import make_plan


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf")
    save_model(folder, LlamaConfig(**SIZES))
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "hf"))


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
    facts = describe(checkpoint)
    json.dumps(facts)
    assert facts["parameters"] == sum(value.numel() for value in model.parameters())
    assert facts["model_class"] == type(model).__name__


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_model(tmp_path, LlamaConfig(**SIZES)).save_pretrained(tmp_path, max_shard_size="20KB")
    (tmp_path / "model.safetensors").unlink()
    return tmp_path


def test_sharded_by_its_index(sharded: Path) -> None:
    checkpoint = open_checkpoint(sharded)
    assert describe(checkpoint)["files"] > 1
    load_model(checkpoint)
    shard = sorted(sharded.glob("model-*.safetensors"))[1]
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(IncompleteCheckpoint, match=f"{shard.name}: ends early"):
        open_checkpoint(sharded)
    shard.unlink()
    with pytest.raises(IncompleteCheckpoint, match=f"{shard.name}: missing, though"):
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


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 5}')
    with pytest.raises(IncompleteCheckpoint, match=r"model\.safetensors"):
        open_checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UnsupportedCheckpoint, match="never opened"):
        open_checkpoint(tmp_path)


def config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def index(folder: Path, places: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def tensors(folder: Path, changes: dict[str, torch.Tensor | None]) -> None:
    path = folder / "model.safetensors"
    changed = load_file(path) | changes
    save_file({k: v for k, v in changed.items() if v is not None}, path, {"format": "pt"})


def renamed(folder: Path, prefix: str) -> None:
    path = folder / "model.safetensors"
    save_file({prefix + k: v for k, v in load_file(path).items()}, path, {"format": "pt"})


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "10^6 layers": (lambda f: config(f, num_hidden_layers=10**6), "num_hidden_layers"),
    "10^9 heads": (lambda f: config(f, num_attention_heads=10**9), "num_attention_heads"),
    "sizes inside text_config": (lambda f: config(f, text_config={"vocab_size": 60, "n_layer": 10**6}), "n_layer"),
    "a float for layers": (lambda f: config(f, num_hidden_layers=2.5), "config.json"),
    "text for a size": (lambda f: config(f, hidden_size="wide"), "config.json|cannot load"),
    "text for rows": (lambda f: config(f, vocab_size="60"), "`vocab_size` .* is '60'"),
    "another size": (lambda f: config(f, hidden_size=36), "config.json|cannot load"),
    "no heads": (lambda f: config(f, num_attention_heads=0), "cannot load"),
    "seven heads": (lambda f: config(f, num_attention_heads=7), "config.json|cannot load|shape"),
    "padding beyond the rows": (lambda f: config(f, pad_token_id=1000), "config.json|cannot load"),
    "a key twice": (lambda f: text(f, "config.json", '{"vocab_size": 60, "vocab_size": 60}'), "the key 'vocab_size' is there twice"),
    "a list for a configuration": (lambda f: text(f, "config.json", "[]"), "expected keys"),
    "a number for a model type": (lambda f: config(f, model_type=5), "config.json"),
    "a pipe for generation_config.json": (
        lambda f: in_place(f / "generation_config.json", os.mkfifo),
        "generation_config.json: cannot be read .it is a pipe",
    ),
    "a pipe for an adapter": (lambda f: os.mkfifo(f / "adapter_config.json"), "adapter_config.json: cannot be read .it is a pipe"),
    "a pipe for the index": (lambda f: os.mkfifo(f / "model.safetensors.index.json"), "a pipe"),
    "an index of the folder": (lambda f: index(f, {"a": ""}), "table of file names"),
    "an index with NUL": (lambda f: index(f, {"a": "b\0c"}), "table of file names"),
    "an index above": (lambda f: index(f, {"a": "../b"}), "table of file names"),
    "an index of numbers": (lambda f: index(f, {"a": 5}), "table of file names"),
    "an empty index": (lambda f: index(f, {}), "table of file names"),
    "an index of an earlier download": (lambda f: index(f, {"a": "model-1.safetensors"}), "model-1.safetensors: missing, though"),
    "half an index": (lambda f: text(f, "model.safetensors.index.json", "{"), "index.json: not JSON"),
    # what would be left out, made up, or computed otherwise
    "an adapter": (lambda f: text(f, "adapter_config.json", '{"peft_type": "LORA"}'), "an adapter"),
    "quantized": (lambda f: config(f, quantization_config={"quant_method": "fp8"}), "a quantized model"),
    "a head of integers": (lambda f: tensors(f, {"lm_head.weight": torch.ones(60, 48, dtype=torch.int8)}), "lm_head.weight is I8"),
    "no norm": (lambda f: tensors(f, {"model.norm.weight": None}), "has no model.norm.weight"),
    "a norm of queries": (
        lambda f: tensors(f, {"model.layers.0.self_attn.q_norm.weight": torch.ones(4)}),
        "does not know: model.layers.0.self_attn.q_norm.weight",
    ),
    "names of a compiled model": (lambda f: renamed(f, "_orig_mod."), "has no lm_head.weight"),
    "another head size": (lambda f: config(f, head_dim=8), "another shape for"),
    "fewer rows": (lambda f: config(f, vocab_size=59), "another shape for"),
    "fewer layers": (lambda f: config(f, num_hidden_layers=1), "does not know: model.layers.1"),
    "more layers": (lambda f: config(f, num_hidden_layers=3), "has no model.layers.2"),
    "biases": (lambda f: config(f, attention_bias=True), "has no .*k_proj.bias"),
    "a head that is tied": (lambda f: config(f, tie_word_embeddings=True), "output head differs"),
    "a class with biases": (lambda f: config(f, model_type="qwen2"), "has no .*k_proj.bias"),
    "a class with other norms": (lambda f: config(f, model_type="olmo"), "does not know"),
    "an encoder and a decoder": (lambda f: config(f, model_type="t5"), "cannot load"),
    "an unknown class with code of its own": (
        lambda f: config(f, model_type="unheard", auto_map={"AutoConfig": "x.Config"}),
        "cannot load",
    ),
    "an unknown RoPE": (lambda f: config(f, rope_parameters={"rope_type": "unheard", "rope_theta": 1e4}), "cannot load"),
    "a number for RoPE": (lambda f: config(f, rope_parameters=5), "cannot load"),
    "text for an epsilon": (lambda f: config(f, rms_norm_eps="1e-6"), "cannot load"),
    "an unknown activation": (lambda f: config(f, hidden_act="unheard"), "cannot load"),
    "weights of another folder": (lambda f: config(f, transformers_weights="../x.safetensors"), "cannot load"),
    "attention unheard of": (lambda f: config(f, _attn_implementation="unheard"), "cannot load"),
}  # fmt: skip

HARMLESS: dict[str, Callable[[Path], object]] = {
    "code of its own": lambda f: config(f, auto_map={"AutoModelForCausalLM": "x.Y"}),
    "a head for classes": lambda f: config(f, architectures=["LlamaForSequenceClassification"]),
    "a path to elsewhere": lambda f: config(f, _name_or_path="/etc/passwd"),
    "a plan for many GPUs": lambda f: config(f, tp_plan="auto", device_map="cuda"),
    "a dtype unheard of": lambda f: config(f, dtype="unheard"),
    "half a generation_config.json": lambda f: text(f, "generation_config.json", "{"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_folders_that_are_refused(folder: Path, name: str) -> None:
    damage, named = REFUSED[name]
    damage(folder)
    with pytest.raises(CheckpointError, match=named) as raised:
        load_model(open_checkpoint(folder))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", HARMLESS)
def test_changes_that_compute_the_same(sound: Path, folder: Path, name: str) -> None:
    HARMLESS[name](folder)
    expected = logits(load_model(open_checkpoint(sound)))
    assert torch.equal(logits(load_model(open_checkpoint(folder))), expected)


def test_keys_that_the_class_does_not_have(
    sound: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = load_model(open_checkpoint(sound))
    assert "leaves it out" not in caplog.text
    unknown = {
        "sliding_window": 4,
        "layer_types": ["sliding_attention"] * 2,
        "residual_multiplier": 0.2,
    }
    config(folder, **unknown, qk_norm=False)
    loaded = load_model(open_checkpoint(folder))
    assert f"LlamaConfig does not have {', '.join(unknown)} and" in caplog.text
    assert torch.equal(logits(loaded), logits(model))
    loaded.save_pretrained(folder / "again")
    written = json.loads((folder / "again/config.json").read_text())
    assert not {"sliding_window", "layer_types"} & written.keys()


FITS = [
    ("as many positions", {"max_position_embeddings": 16}, None),
    ("too few", {"max_position_embeddings": 15}, r"`max_position_embeddings` is 15.*sequence_length: 15"),
    ("too few by an old name", {"n_positions": 8}, "`n_positions` is 8"),
    ("of the text of a larger model", {"text_config": {"max_position_embeddings": 4, "vocab_size": 60}}, "`max_position_embeddings` is 4"),
    ("not recorded", {"max_position_embeddings": None}, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"), [one[1:] for one in FITS], ids=[one[0] for one in FITS]
)
def test_the_sequence_fits_its_positions(
    folder: Path, changes: dict[str, object], expected: str | None
) -> None:
    config(folder, **changes)
    plan = make_plan(folder / "cache", Path("some/tokenizer"), sequence_length=16)
    checkpoint = open_checkpoint(folder)
    check_tokenizer_fits(checkpoint, 60)
    with pytest.raises(CheckpointError, match="60 rows, but the tokenizer uses ids up to 60"):
        check_tokenizer_fits(checkpoint, 61)
    if expected is None:
        check_agreement(plan, checkpoint)
        return
    with pytest.raises(CheckpointError, match=expected):
        check_agreement(plan, checkpoint)
