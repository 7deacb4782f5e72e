"""Importing a Hugging Face model, and writing shards exactly as Nanotron does."""

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import GPTNeoXConfig, LlamaConfig, Qwen2Config

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.import_hf import import_hf
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.save import write_parameters
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from tests.checkpoints.damage import tensors
from tests.checkpoints.huggingface import NEOX, SIZES, logits, save_model
from tests.checkpoints.test_reference import INDEX, merged

CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "llama tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama interpolated": LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0} ),
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
    assert (checkpoint.step, checkpoint.sequence_length) == (5, 32)
    assert checkpoint.tokenizer_name == "my/tok"
    training = yaml.safe_load((checkpoint.path / "config.yaml").read_text())
    assert training["model"]["model_config"] == checkpoint.model_config
    assert training["parallelism"]["tp"] == 2
    metadata = json.loads((checkpoint.path / "checkpoint_metadata.json").read_text())
    assert (metadata["tp"], metadata["metas"]["last_train_step"]) == (2, 5)


@pytest.mark.parametrize("given", [None, "../hf"])
def test_the_folder_is_recorded_so_that_it_is_found_from_anywhere(
    given: str | None, hf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path / "beside")
    import_hf(Path("../hf"), Path("c"), tokenizer_name=given)
    assert open_checkpoint(Path("c")).tokenizer_name == str(hf)


def test_steps_beside_one_another(hf: Path, tmp_path: Path) -> None:
    """The latest is the highest, none is overwritten, and one cannot be imported again."""
    target = tmp_path / "c"
    for step in (10, 30, 20):
        import_hf(hf, target, step=step)
    assert (target / "latest.txt").read_text() == "30"
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    for step, named in ((10, "is there already"), (-1, "negative")):
        with pytest.raises(CheckpointError, match=named):
            import_hf(hf, target, step=step)
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*")} == before
    with pytest.raises(CheckpointError, match="not a Hugging Face folder"):
        import_hf(target / "10", tmp_path / "d")


def test_vocabulary_is_padded_to_tp(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = save_model(tmp_path / "hf", LlamaConfig(**{**SIZES, "vocab_size": 61}))
    import_hf(tmp_path / "hf", tmp_path / "c", tp=4)
    assert "padded from 61 to 64" in caplog.text
    checkpoint = open_checkpoint(tmp_path / "c")
    assert checkpoint.vocab_size == 64
    ours = logits(load_model(checkpoint))
    assert torch.equal(ours[..., :61], logits(model))
    assert not ours[..., 61:].any()


@pytest.mark.parametrize("tp", [5, 8, 0, -1])
def test_tp_that_does_not_fit_names_those_that_do(hf: Path, tmp_path: Path, tp: int) -> None:
    with pytest.raises(CheckpointError, match=r"tp can be 1, 2, 3, 4, 6, 12$"):
        import_hf(hf, tmp_path / "c", tp=tp)
    assert not (tmp_path / "c").exists()


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
FOREIGN = [
    (LlamaConfig(**SIZES, attention_bias=True), "attention_bias"),
    (LlamaConfig(**SIZES, mlp_bias=True), "mlp_bias"),
    (LlamaConfig(**SIZES, head_dim=8), "head_dim"),
    (LlamaConfig(**SIZES, rope_parameters=DYNAMIC), "dynamic"),
    (GPTNeoXConfig(**NEOX), "gpt_neox"),
]


@pytest.mark.parametrize(("config", "named"), FOREIGN, ids=[named for _, named in FOREIGN])
def test_models_without_counterpart(tmp_path: Path, config: Any, named: str) -> None:
    save_model(tmp_path / "hf", config)
    with pytest.raises(UnsupportedCheckpoint, match=named):
        import_hf(tmp_path / "hf", tmp_path / "c")
    assert not (tmp_path / "c" / "0").exists()


def test_a_head_that_is_tied_and_another_is_refused(tmp_path: Path) -> None:
    model = save_model(tmp_path / "hf", LlamaConfig(**SIZES, tie_word_embeddings=True))
    head = load_file(tmp_path / "hf/model.safetensors")["model.embed_tokens.weight"]
    tensors(tmp_path / "hf", {"lm_head.weight": head.clone()})
    import_hf(tmp_path / "hf", tmp_path / "c")
    for same in (tmp_path / "c", tmp_path / "hf"):
        assert torch.equal(logits(load_model(open_checkpoint(same))), logits(model))
    tensors(tmp_path / "hf", {"lm_head.weight": head + 0.5})
    with pytest.raises(CheckpointError, match=r"output head differs .*`tie_word_embeddings`"):
        import_hf(tmp_path / "hf", tmp_path / "d")
    assert list((tmp_path / "d").iterdir()) == []


def test_nothing_is_left_half_written(
    hf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(_: Any, path: Path, metadata: Any) -> None:
        calls.append(path)
        path.touch()
        if len(calls) > 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaluation.checkpoints.save.save_file", fail)
    with pytest.raises(CheckpointError, match="No space left on device"):
        import_hf(hf, tmp_path / "c", step=3)
    assert list((tmp_path / "c").iterdir()) == []


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


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_follow_the_umask(hf: Path, tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        folder = import_hf(hf, tmp_path / "c", tp=2)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {mode}
