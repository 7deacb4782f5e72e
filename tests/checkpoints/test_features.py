"""Combinations of features, parallelism and dtypes beyond the fixtures, by logits."""

from pathlib import Path

import pytest
import torch

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from tests.checkpoints.nanotron import (
    TRAINING,
    Config,
    age,
    forward,
    llama,
    make_checkpoint,
    moe,
    qwen2,
    rewrite,
    shard_paths,
)

IDS = torch.tensor([3, 17, 42, 5, 9, 59, 0, 21, 33, 8, 12, 7])
POSITIONS = torch.tensor([0, 1, 2, 3, 4, 5, 0, 1, 0, 1, 2, 3])

FEATURES: dict[str, Config] = {
    "llama": llama(),
    "llama with a number that YAML reads as text": llama(rms_norm_eps="1e-05"),
    "llama tied": llama(tie_word_embeddings=True),
    "llama rope_scaling is dropped": llama(rope_scaling={"rope_type": "llama3", "factor": 8.0,
        "original_max_position_embeddings": 8} ),
    "llama attention_bias is dead": llama(attention_bias=True),
    "llama mup": llama(),
    "qwen2 mup": qwen2(),
    "qwen2 plain": qwen2(),
    "sliding bias interleaved": qwen2(sliding_window_size=3, attention_bias=True, rope_interleaved=True ),
    "nope": qwen2(no_rope_layer=2),
    "interpolated nope sliding": qwen2(rope_seq_len_interpolation_factor=2, no_rope_layer=2,
        sliding_window_size=4 ),
    "experts": qwen2(moe_config=moe()),
    "experts everywhere bias interleaved": qwen2(moe_config=moe(layers=[-1]), attention_bias=True,
        rope_interleaved=True ),
    "experts without shared": qwen2(moe_config=moe(enable_shared_expert=False,
        shared_expert_intermediate_size=0) ),
}  # fmt: skip


def check_logits(
    folder: Path, tensors: dict[str, torch.Tensor], config: Config, *, mup: bool = False
) -> None:
    model = load_model(open_checkpoint(folder), dtype=torch.float32)
    documents = "is_qwen2_config" in config
    positions = POSITIONS if documents else torch.arange(len(IDS))
    with torch.inference_mode():
        ours = model(IDS[None], position_ids=positions[None], use_cache=False).logits[0].double()
    expected = forward(tensors, config, IDS, POSITIONS if documents else None, mup=mup)
    assert float((ours - expected).norm() / expected.norm()) < 1e-5


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize(("tp", "pp", "json_config"), [(1, 1, True), (2, 2, False)])
def test_feature(tmp_path: Path, name: str, tp: int, pp: int, json_config: bool) -> None:
    """By model_config.json, or the same in config.yaml alone; muP changes nothing in Qwen2."""
    config, mup = FEATURES[name], name.endswith("mup")
    method = {"init_method": {"use_mup": mup}}
    training = TRAINING | {"model": {**method, "model_config": config}}
    tensors = make_checkpoint(
        tmp_path / "7", config, tp=tp, pp=pp, training=training, json_config=json_config
    )
    check_logits(tmp_path / "7", tensors, config, mup=mup and name.startswith("llama"))


@pytest.mark.parametrize(
    ("kernels", "trained"),
    [
        ({"_attn_implementation": "flex_attention"}, 5),
        ({"_attn_implementation": "flex_attention", "flex_attention_mask": "document"}, None),
        ({"_attn_implementation": "flex_attention", "_use_qkv_packed": True}, 4),
        ({"_attn_implementation": "sdpa"}, None),
        ({"_attn_implementation": "flash_attention_2"}, 4),
    ],
)
def test_a_window_is_as_wide_as_in_training(
    tmp_path: Path, kernels: Config, trained: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Nanotron's flex attention keeps q - k <= 4, its sdpa has no window; packed, all are flash's."""
    tensors = make_checkpoint(tmp_path / "7", qwen2(sliding_window_size=4, **kernels))
    check_logits(tmp_path / "7", tensors, qwen2(sliding_window_size=trained))
    is_noted = kernels == {"_attn_implementation": "flash_attention_2"}
    assert ("is read as 4 tokens" in caplog.text) == is_noted


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("config", [qwen2(attention_bias=True), qwen2(moe_config=moe())])
def test_half_precision_is_read_exactly(tmp_path: Path, config: Config, dtype: torch.dtype) -> None:
    """Upcast, the logits are exact; as stored, the model keeps the dtype, but for routers."""
    tensors = make_checkpoint(tmp_path / "7", config, tp=2, dtype=dtype)
    check_logits(tmp_path / "7", tensors, config)
    checkpoint = open_checkpoint(tmp_path / "7")
    assert checkpoint.dtype == str(dtype).removeprefix("torch.")
    model = load_model(checkpoint)
    kept = {name: value.dtype for name, value in model.named_parameters()}
    assert {value for name, value in kept.items() if ".mlp.gate.weight" not in name} == {dtype}
    assert all(value == torch.float32 for name, value in kept.items() if ".mlp.gate.weight" in name)
    with torch.inference_mode():
        ours = model(IDS[None], position_ids=POSITIONS[None], use_cache=False).logits[0]
    expected = forward(tensors, config, IDS, POSITIONS)
    assert ours.dtype == dtype
    assert float((ours.double() - expected).norm() / expected.norm()) < 0.05


def test_mixed_dtypes_lose_nothing(tmp_path: Path) -> None:
    tensors = make_checkpoint(tmp_path / "7", llama(), dtype=torch.bfloat16)
    name = "model.decoder.0.pp_block.input_layernorm.weight"
    tensors[name] = torch.randn(32)
    rewrite(shard_paths(tmp_path / "7", name)[0], tensors[name])
    age(tmp_path)
    model = load_model(open_checkpoint(tmp_path / "7"))
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    check_logits(tmp_path / "7", tensors, llama())
