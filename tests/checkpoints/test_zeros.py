"""Weights of nothing but zeros: a copy that was not finished, or how some models begin."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import GPTNeoXConfig, LlamaConfig

from evaluation.__main__ import main
from evaluation.checkpoints.completeness import check_complete, check_whole
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from tests.checkpoints.damage import tensors
from tests.checkpoints.huggingface import NEOX, SIZES, save_model
from tests.checkpoints.nanotron import age, llama, make_checkpoint, moe, qwen2, rewrite, shard_paths

EMBEDDING = "model.token_position_embeddings.pp_block.token_embedding.weight"
HEAD = "model.lm_head.pp_block.weight"
BLOCK = "model.decoder.1.pp_block"


def blank(folder: Path, name: str, shards: slice = slice(None)) -> None:
    for path in shard_paths(folder, name)[shards]:
        rewrite(path, torch.zeros_like(load_file(path)["data"]))
    age(folder)


@pytest.mark.parametrize("step", ["0", "7"])
@pytest.mark.parametrize(
    ("name", "shards", "begins"),
    [
        (EMBEDDING, slice(None), False),
        (EMBEDDING, slice(1, 2), False),  # one of two shards
        (f"{BLOCK}.attn.qkv_proj.weight", slice(1), False),
        (f"{BLOCK}.mlp.experts.merged_gate_up_proj", slice(None), False),
        (HEAD, slice(None), True),
        (f"{BLOCK}.attn.o_proj.weight", slice(None), True),
        (f"{BLOCK}.mlp.experts.merged_down_proj", slice(None), True),
    ],
)
def test_matrices_of_zeros(
    tmp_path: Path,
    step: str,
    name: str,
    shards: slice,
    begins: bool,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are refused, but at step 0 those that some models begin with."""
    make_checkpoint(tmp_path / step, qwen2(moe_config=moe()), tp=2)
    blank(tmp_path / step, name, shards)
    checkpoint = open_checkpoint(tmp_path / step)
    if begins and step == "0":
        check_complete(checkpoint)
        load_model(checkpoint)
        assert caplog.text.count("hold nothing but zeros") == 1
        return
    for look in (check_complete, check_whole, load_model):
        with pytest.raises(IncompleteCheckpoint, match="data holds nothing but zeros"):
            look(checkpoint)
    assert main(["inspect", str(tmp_path / step)]) == 1
    assert name.split(".")[-2] in capsys.readouterr().err


def test_biases_may_be_zero(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", qwen2(attention_bias=True))
    blank(tmp_path / "7", f"{BLOCK}.attn.qkv_proj.bias")
    check_complete(open_checkpoint(tmp_path / "7"))


def second_half(values: torch.Tensor) -> None:
    values.view(-1)[values.numel() // 2 :] = 0


def hole(values: torch.Tensor) -> None:
    values.view(-1)[values.numel() // 3 : values.numel() * 2 // 3] = 0


def nan_row(values: torch.Tensor) -> None:
    values[len(values) // 2] = torch.nan


def infinite(values: torch.Tensor) -> None:
    values.view(-1)[-1] = torch.inf


NORM, QKV, QKV_BIAS = (
    f"{BLOCK}.{name}"
    for name in ("input_layernorm.weight", "attn.qkv_proj.weight", "attn.qkv_proj.bias")
)
ZEROS, NUMBERS = "nothing but zeros", "numbers that are not finite"
DAMAGES = [
    (QKV, second_half, f"{ZEROS} at its end"),
    (QKV, hole, f"{ZEROS} in its middle"),
    (HEAD, hole, f"{ZEROS} in its middle"),
    (NORM, torch.Tensor.zero_, f"{ZEROS}, as in a copy"),
    ("model.final_layer_norm.pp_block.weight", torch.Tensor.zero_, f"{ZEROS}, as in a copy"),
    *((name, nan_row, NUMBERS) for name in (EMBEDDING, QKV, NORM, QKV_BIAS)),
    *((name, infinite, NUMBERS) for name in (QKV, QKV_BIAS)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("name", "damage", "words"), DAMAGES, ids=[f"{d.__name__} {n}" for n, d, _ in DAMAGES]
)
def test_parts_of_tensors(
    tmp_path: Path,
    name: str,
    damage: Callable[[torch.Tensor], object],
    words: str,
    dtype: torch.dtype,
) -> None:
    make_checkpoint(tmp_path / "7", qwen2(attention_bias=True), dtype=dtype)
    check_complete(open_checkpoint(tmp_path / "7"))
    (path,) = shard_paths(tmp_path / "7", name)
    values = load_file(path)["data"]
    damage(values)
    rewrite(path, values)
    with pytest.raises(CheckpointError, match=words):
        check_complete(open_checkpoint(tmp_path / "7"))


def test_rows_of_tokens_that_no_text_uses(tmp_path: Path) -> None:
    """Padding is often the first, and a vocabulary is padded to a round number at its end."""
    make_checkpoint(tmp_path / "7", llama(vocab_size=400))
    for name in (EMBEDDING, HEAD):
        (path,) = shard_paths(tmp_path / "7", name)
        values = load_file(path)["data"]
        values[0], values[-50:] = 0, 0
        rewrite(path, values)
    check_complete(open_checkpoint(tmp_path / "7"))


def keep_only(folder: Path, kept: tuple[str, ...]) -> None:
    found = load_file(folder / "model.safetensors")
    others = [name for name in found if not name.endswith(kept)]
    tensors(folder, {name: torch.zeros_like(found[name]) for name in others})


@pytest.mark.parametrize(
    ("config", "kept", "named"),
    [
        (LlamaConfig(**SIZES), (), "model.embed_tokens.weight"),
        (LlamaConfig(**SIZES), ("embed_tokens.weight", "lm_head.weight"), "k_proj|up_proj|gate_proj"),
        (GPTNeoXConfig(**NEOX), ("embed_in.weight", "norm.weight"), "query_key_value|h_to_4h"),
    ],
)  # fmt: skip
def test_hugging_face_folders(
    tmp_path: Path, config: LlamaConfig, kept: tuple[str, ...], named: str
) -> None:
    save_model(tmp_path / "hf", config)
    keep_only(tmp_path / "hf", kept)
    with pytest.raises(IncompleteCheckpoint, match=f"({named}).* holds nothing but zeros"):
        load_model(open_checkpoint(tmp_path / "hf"))


def test_hugging_face_folders_that_begin_so(tmp_path: Path) -> None:
    save_model(tmp_path / "hf")
    kept = ("embed_tokens.weight", "norm.weight", "k_proj.weight", "v_proj.weight")
    keep_only(tmp_path / "hf", (*kept, "gate_proj.weight", "up_proj.weight"))
    load_model(open_checkpoint(tmp_path / "hf"))
