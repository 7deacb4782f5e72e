"""Importing a Hugging Face model, and writing shards exactly as Nanotron does."""

import ast
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, Qwen2Config

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint, read_architecture
from evaluation.checkpoints.import_hf import import_hf
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.mapping import expected_parameters
from evaluation.checkpoints.save import write_parameters
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from tests.checkpoints.test_reference import INDEX, merged

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 48,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
IDS = torch.tensor([[3, 17, 42, 5, 9, 59, 0, 21]])


def save_model(folder: Path, config: Any, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    model_class = getattr(transformers, f"{type(config).__name__[:-6]}ForCausalLM")
    model = model_class(config).to(dtype).eval()
    for name, value in model.named_parameters():
        if name.endswith("bias"):  # transformers starts them at zero, which would hide mistakes
            torch.nn.init.normal_(value)
    model.save_pretrained(folder)
    return model


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        result: torch.Tensor = model(IDS).logits
    return result


CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "llama tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama interpolated": LlamaConfig(
        **SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0}
    ),
    "qwen2": Qwen2Config(**SIZES),
    "qwen2 tied": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen2 sliding": Qwen2Config(
        **SIZES, use_sliding_window=True, sliding_window=3, max_window_layers=0
    ),
}


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
    labels = {re.search(r"tp-rank.*", path.name) for path in written.rglob("*_tp-rank-*")}
    assert labels
    assert len({*written.rglob(f"*_tp-rank-*-of-{tp}.safetensors")}) == len(
        {*written.rglob("*_tp-rank-*")}
    )


def test_dtype_and_records(tmp_path: Path) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES), torch.bfloat16)
    import_hf(
        tmp_path / "hf", tmp_path / "c", tp=2, step=5, sequence_length=32, tokenizer_name="my/tok"
    )
    checkpoint = open_checkpoint(tmp_path / "c" / "5")
    assert checkpoint.dtype == "bfloat16"
    assert (checkpoint.step, checkpoint.sequence_length) == (5, 32)
    assert checkpoint.tokenizer_name == "my/tok"
    training = yaml.safe_load((checkpoint.path / "config.yaml").read_text())
    assert training["model"]["model_config"] == checkpoint.model_config
    assert training["parallelism"]["tp"] == 2
    metadata = json.loads((checkpoint.path / "checkpoint_metadata.json").read_text())
    assert (metadata["tp"], metadata["metas"]["last_train_step"]) == (2, 5)


def test_latest_is_the_highest_step(tmp_path: Path) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    for step in (10, 30, 20):
        import_hf(tmp_path / "hf", tmp_path / "c", step=step)
    assert (tmp_path / "c" / "latest.txt").read_text() == "30"
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
        "10",
        "20",
        "30",
        "latest.txt",
    ]


def test_vocabulary_is_padded_to_tp(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = save_model(tmp_path / "hf", LlamaConfig(**{**SIZES, "vocab_size": 61}))
    import_hf(tmp_path / "hf", tmp_path / "c", tp=4)
    assert "padded from 61 to 64" in caplog.text
    checkpoint = open_checkpoint(tmp_path / "c")
    assert checkpoint.vocab_size == 64
    ours = logits(load_model(checkpoint))
    assert torch.equal(ours[..., :61], logits(model))
    assert not ours[..., 61:].any()


def test_tp_that_does_not_fit_names_those_that_do(tmp_path: Path) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    for tp in (5, 8, 0, -1):
        with pytest.raises(CheckpointError, match=r"tp can be 1, 2, 3, 4, 6, 12$"):
            import_hf(tmp_path / "hf", tmp_path / "c", tp=tp)
    assert not (tmp_path / "c").exists()


def test_a_step_is_never_overwritten(tmp_path: Path) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    import_hf(tmp_path / "hf", tmp_path / "c", step=1)
    with pytest.raises(CheckpointError, match="is there already"):
        import_hf(tmp_path / "hf", tmp_path / "c", step=1)
    with pytest.raises(CheckpointError, match="negative"):
        import_hf(tmp_path / "hf", tmp_path / "c", step=-1)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"head_dim": 8}, "head_dim"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            "dynamic",
        ),
    ],
)
def test_models_without_counterpart(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES, **changes))
    with pytest.raises(UnsupportedCheckpoint, match=named):
        import_hf(tmp_path / "hf", tmp_path / "c")
    assert not (tmp_path / "c" / "0").exists()


def head(folder: Path, change: float) -> None:
    """Puts a head beside the embedding that it is tied to."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    own = tensors["model.embed_tokens.weight"].clone()
    own[3, 4] += change
    save_file({**tensors, "lm_head.weight": own}, path, {"format": "pt"})


def test_a_head_that_is_tied_and_another_is_refused(tmp_path: Path) -> None:
    model = save_model(tmp_path / "hf", LlamaConfig(**SIZES, tie_word_embeddings=True))
    head(tmp_path / "hf", 0.0)
    import_hf(tmp_path / "hf", tmp_path / "c")
    for same in (tmp_path / "c", tmp_path / "hf"):
        assert torch.equal(logits(load_model(open_checkpoint(same))), logits(model))
    head(tmp_path / "hf", 0.5)
    with pytest.raises(CheckpointError, match=r"lm_head.weight differs .*`tie_word_embeddings`"):
        import_hf(tmp_path / "hf", tmp_path / "d")
    assert list((tmp_path / "d").iterdir()) == []
    with pytest.raises(CheckpointError, match=r"output head differs .*`tie_word_embeddings`"):
        load_model(open_checkpoint(tmp_path / "hf"))


@pytest.mark.parametrize("shape", [(), (48 * 48,), (48, 47), (1, 48, 48)])
def test_a_tensor_of_another_shape_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    path, name = tmp_path / "hf/model.safetensors", "model.layers.1.self_attn.k_proj.weight"
    save_file({**load_file(path), name: torch.ones(shape)}, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"k_proj.weight has shape .* makes it \(48, 48\)"):
        import_hf(tmp_path / "hf", tmp_path / "c")
    assert list((tmp_path / "c").iterdir()) == []


def test_whole_numbers_as_weights_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    path, name = tmp_path / "hf/model.safetensors", "model.norm.weight"
    tensors = load_file(path)
    save_file({**tensors, name: tensors[name].to(torch.int32)}, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight is I32; only F64, "):
        import_hf(tmp_path / "hf", tmp_path / "c")


def test_other_kinds_of_model(tmp_path: Path) -> None:
    save_model(
        tmp_path / "hf",
        transformers.GPTNeoXConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2),
    )
    with pytest.raises(UnsupportedCheckpoint, match="gpt_neox"):
        import_hf(tmp_path / "hf", tmp_path / "c")
    save_model(tmp_path / "llama", LlamaConfig(**SIZES))
    import_hf(tmp_path / "llama", tmp_path / "c")
    with pytest.raises(CheckpointError, match="not a Hugging Face folder"):
        import_hf(tmp_path / "c" / "0", tmp_path / "d")


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    calls = []

    def fail(tensors: Any, path: Path, metadata: Any) -> None:
        calls.append(path)
        path.touch()
        if len(calls) > 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaluation.checkpoints.save.save_file", fail)
    with pytest.raises(CheckpointError, match="No space left on device"):
        import_hf(tmp_path / "hf", tmp_path / "c", step=3)
    assert list((tmp_path / "c").iterdir()) == []


@pytest.mark.parametrize("name", [name for name in sorted(INDEX) if INDEX[name]["tp"] == 2])
def test_shards_equal_those_of_nanotron(shared: Path, tmp_path: Path, name: str) -> None:
    """File by file: names, data, and what the metadata says."""
    checkpoint = open_checkpoint(shared / "fixtures" / "nanotron" / name)
    expected = expected_parameters(read_architecture(checkpoint))
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


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_follow_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    before = os.umask(umask)
    try:
        folder = import_hf(tmp_path / "hf", tmp_path / "c", tp=2)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {mode}
