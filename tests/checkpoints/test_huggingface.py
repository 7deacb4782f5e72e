"""Hugging Face folders: loaded as transformers does, or refused in one sentence that names the file."""

import json
import shutil
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
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from tests.checkpoints.damage import config, damage
from tests.checkpoints.huggingface import NEOX, SIZES, logits, save_model
from tests.prefill.plans import make_plan
from tests.scoring.families import built
from tests.tables import cases


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf")
    save_model(folder)
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


@pytest.mark.parametrize("name", ["GPTJForCausalLM", "BloomForCausalLM", "MambaForCausalLM"])
def test_a_class_without_fused_attention_loads(tmp_path: Path, name: str) -> None:
    model = built(name)
    model.save_pretrained(tmp_path)
    loaded = load_model(open_checkpoint(tmp_path))
    assert loaded.config._attn_implementation == "eager"
    assert torch.equal(logits(loaded), logits(model))


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_model(tmp_path).save_pretrained(tmp_path, max_shard_size="20KB")
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
    with pytest.raises(IncompleteCheckpoint, match="no other weights are read"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(("line", "named"), cases("checkpoints/damage", "hugging_face_refused"))
def test_folders_that_are_refused(folder: Path, line: str, named: str) -> None:
    damage(folder, line)
    with pytest.raises(CheckpointError, match=named) as raised:
        load_model(open_checkpoint(folder))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("line", cases("checkpoints/damage", "hugging_face_harmless"))
def test_changes_that_compute_the_same(sound: Path, folder: Path, line: str) -> None:
    damage(folder, line)
    expected = logits(load_model(open_checkpoint(sound)))
    assert torch.equal(logits(load_model(open_checkpoint(folder))), expected)


def test_keys_that_the_class_does_not_have(
    sound: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = load_model(open_checkpoint(sound))
    unknown = {
        "sliding_window": 4,
        "layer_types": ["sliding_attention"] * 2,
        "residual_multiplier": 0.2,
    }
    config(folder, **unknown, qk_norm=False, is_llama_config=True)
    loaded = load_model(open_checkpoint(folder))
    assert f"LlamaConfig does not have {', '.join(unknown)} and" in caplog.text
    assert torch.equal(logits(loaded), logits(model))
    loaded.save_pretrained(folder / "again")
    written = json.loads((folder / "again/config.json").read_text())
    assert not {"sliding_window", "layer_types"} & written.keys()


@pytest.mark.parametrize("name", ["Gemma3ForCausalLM", "Qwen3MoeForCausalLM"])
def test_keys_that_the_class_reads_are_no_warning(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = built(name)
    model.save_pretrained(tmp_path)
    head_dim = model.model.layers[0].self_attn.head_dim
    config(tmp_path, sliding_window_pattern=6, head_dim=head_dim)
    load_model(open_checkpoint(tmp_path))
    unread = "sliding_window_pattern" if "Qwen3" in name else "ignores it"
    assert caplog.text.count("ignores it") == caplog.text.count(unread) == int("Qwen3" in name)


def test_answers_end_by_all_configurations(folder: Path) -> None:
    config(folder, eos_token_id=[1, 7])
    (folder / "generation_config.json").write_text('{"eos_token_id": 9}')
    assert open_checkpoint(folder).end_tokens == {1, 7, 9}
    config(folder, eos_token_id=None)
    (folder / "generation_config.json").unlink()
    assert open_checkpoint(folder).end_tokens == set()


def test_an_old_file_beside_shards_is_never_loaded(folder: Path) -> None:
    """transformers would load it, whatever the index says."""
    save_model(folder).save_pretrained(folder / "new", max_shard_size="20KB")
    for path in (folder / "new").glob("model*"):
        path.rename(folder / path.name)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: .* model\.safetensors\.index"):
        open_checkpoint(folder)
    (folder / "model.safetensors").unlink()
    load_model(open_checkpoint(folder))


FITS = {
    "as many positions": ({"max_position_embeddings": 16}, None),
    "too few": ({"max_position_embeddings": 15}, r"15 tokens at most.*sequence_length: 15"),
    "too few by an old name": ({"n_positions": 8}, "8 tokens at most"),
    "of the text of a larger model": ({"text_config": {"max_position_embeddings": 4, "vocab_size": 60}},
        "4 tokens at most"),
    "not recorded": ({"max_position_embeddings": None}, None),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), FITS.values(), ids=FITS)
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
