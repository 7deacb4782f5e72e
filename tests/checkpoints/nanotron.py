"""Random Nanotron checkpoints, and their logits by a forward pass of our own in float64.

The forward pass is written from Nanotron's, parameter by parameter, and shares no code with the
package, which test_reference.py compares with the logits that Nanotron itself gave.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import embedding, silu, softmax

from demo.nanotron_writer import write_parameters
from evaluation.checkpoints.architecture import parse_architecture

Config = dict[str, Any]

TRAINING: Config = {
    "general": {"step": 12},
    "model": {"init_method": {"std": 0.02}},
    "tokenizer": {"tokenizer_name_or_path": "some/tokenizer"},
    "tokens": {"sequence_length": 2048},
}
"""What of a training configuration is read."""


def llama(**changes: Any) -> Config:
    return {
        "is_llama_config": True,
        "hidden_size": 32,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 60,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000.0,
        "rope_interleaved": False,
        "rope_scaling": None,
        "tie_word_embeddings": False,
        "max_position_embeddings": 64,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **changes,
    }


def qwen2(**changes: Any) -> Config:
    base = llama()
    del base["is_llama_config"]
    extras = {"attention_bias": False, "sliding_window_size": None, "no_rope_layer": None}
    return {"is_qwen2_config": True, **base, **extras, "moe_config": None, **changes}


def moe(**changes: Any) -> Config:
    return {
        "num_experts": 4,
        "top_k": 2,
        "moe_intermediate_size": 12,
        "shared_expert_intermediate_size": 8,
        "layers": [1],
        "enable_shared_expert": True,
        **changes,
    }


def make_checkpoint(
    folder: Path,
    config: Config,
    *,
    tp: int = 1,
    pp: int = 1,
    dtype: torch.dtype = torch.float32,
    training: Config | None = TRAINING,
    json_config: bool = True,
    seed: int = 0,
) -> dict[str, Tensor]:
    """Writes a checkpoint of random weights, aged by an hour; returns whole tensors by name."""
    generator = torch.Generator().manual_seed(seed)
    expected = parse_architecture(config, False, None, "test").parameters()
    tensors = {}
    for name, source in expected.items():
        values = torch.randn(source.shape, generator=generator) * 0.4
        values = values + 1 if "norm" in name else values
        tensors[name] = values.to(torch.float32 if "router" in name else dtype)
    write_parameters(folder, expected, tensors.__getitem__, tp=tp)
    for path in list(folder.rglob("*_pp-rank-0-of-1_*")):
        parts = path.relative_to(folder / "model/model").parts
        rank = 0 if parts[0] == "token_position_embeddings" else pp - 1
        if parts[0] == "decoder":
            rank = int(parts[1]) * pp // config["num_hidden_layers"]
        path.rename(path.with_name(path.name.replace("0-of-1", f"{rank}-of-{pp}", 1)))
    if json_config:
        (folder / "model_config.json").write_text(json.dumps(config))
    if training is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump(training))
    age(folder)
    return tensors


def age(folder: Path) -> None:
    """Sets all times an hour back, so that nothing looks as if it was being written."""
    for path in [folder, *folder.rglob("*")]:
        status = path.stat()
        past = status.st_mtime_ns - 3600 * 10**9
        os.utime(path, ns=(past, past))


def shard_paths(folder: Path, name: str) -> list[Path]:
    *parents, last = name.split(".")
    return sorted(folder.joinpath("model", *parents).glob(f"model_{last}[._]*"))


def rewrite(path: Path, tensor: Tensor | None = None, **metadata: str) -> None:
    """Writes a shard again with another tensor or other metadata."""
    with safe_open(path, framework="pt") as file:
        known = file.metadata() or {}
    tensor = load_file(path)["data"] if tensor is None else tensor
    save_file({"data": tensor.contiguous()}, path, {**known, **metadata})


def forward(
    tensors: dict[str, Tensor],
    config: Config,
    ids: Tensor,
    positions: Tensor | None = None,
    *,
    mup: bool = False,
) -> Tensor:
    """Logits (T, V) of one row of ids (T,); documents begin where positions are 0."""
    weights = {name.removeprefix("model."): value.double() for name, value in tensors.items()}
    eps = float(config["rms_norm_eps"])
    x = embedding(ids, weights["token_position_embeddings.pp_block.token_embedding.weight"])
    documents = torch.zeros_like(ids) if positions is None else (positions == 0).cumsum(0)
    for layer in range(config["num_hidden_layers"]):
        block = f"decoder.{layer}.pp_block"
        normed = _norm(x, weights[f"{block}.input_layernorm.weight"], eps)
        x = x + _attention(normed, weights, f"{block}.attn", config, layer, documents, mup)
        normed = _norm(x, weights[f"{block}.post_attention_layernorm.weight"], eps)
        if f"{block}.mlp.router.weight" in weights:
            x = x + _experts(normed, weights, f"{block}.mlp", config["moe_config"])
        else:
            x = x + _mlp(normed, weights, f"{block}.mlp")
    x = _norm(x, weights["final_layer_norm.pp_block.weight"], eps)
    head = "token_position_embeddings.pp_block.token_embedding.weight"
    return x @ weights.get("lm_head.pp_block.weight", weights[head]).T


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def _mlp(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    gate, up = (x @ weights[f"{name}.gate_up_proj.weight"].T).chunk(2, -1)
    return (silu(gate) * up) @ weights[f"{name}.down_proj.weight"].T


def _experts(x: Tensor, weights: dict[str, Tensor], name: str, config: Config) -> Tensor:
    chances, chosen = softmax(x @ weights[f"{name}.router.weight"].T, -1).topk(config["top_k"], -1)
    gate_up = weights[f"{name}.experts.merged_gate_up_proj"]
    down = weights[f"{name}.experts.merged_down_proj"]
    rows = []
    for token, (probabilities, experts) in enumerate(zip(chances, chosen, strict=True)):
        total = torch.zeros_like(x[token])
        for probability, expert in zip(probabilities, experts, strict=True):
            gate, up = (x[token] @ gate_up[expert]).chunk(2)
            total = total + probability * ((silu(gate) * up) @ down[expert])
        rows.append(total)
    result = torch.stack(rows)
    if config["enable_shared_expert"]:
        opening = torch.sigmoid(x @ weights[f"{name}.shared_expert_gate.weight"].T)
        result = result + opening * _mlp(x, weights, f"{name}.shared_expert")
    return result


def _attention(
    x: Tensor,
    weights: dict[str, Tensor],
    name: str,
    config: Config,
    layer: int,
    documents: Tensor,
    mup: bool,
) -> Tensor:
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    size = config["hidden_size"] // heads
    qkv = x @ weights[f"{name}.qkv_proj.weight"].T
    if f"{name}.qkv_proj.bias" in weights:
        qkv = qkv + weights[f"{name}.qkv_proj.bias"]
    q, k, v = qkv.view(len(x), -1, size).split([heads, kv_heads, kv_heads], 1)  # (T, heads, d)
    every = config.get("no_rope_layer")
    roped = not every or (layer + 1) % every != 0
    if roped:
        q, k = _rope(q, config), _rope(k, config)
    k, v = (item.repeat_interleave(heads // kv_heads, 1) for item in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / (size if mup else math.sqrt(size))
    index = torch.arange(len(x))
    distance = index[:, None] - index[None]
    seen = (distance >= 0) & (documents[:, None] == documents[None])
    if roped and config.get("sliding_window_size"):
        seen &= distance < config["sliding_window_size"]
    scores = scores.masked_fill(~seen, -torch.inf)
    mixed = torch.einsum("hqk,khd->qhd", softmax(scores, -1), v)
    return mixed.reshape(len(x), -1) @ weights[f"{name}.o_proj.weight"].T


def _rope(x: Tensor, config: Config) -> Tensor:
    """Rotates (T, heads, d) by the row's index; the key's absence means adjacent pairs."""
    size = x.shape[-1]
    frequency = config.get("rope_theta", 10_000.0) ** (-torch.arange(0, size, 2).double() / size)
    factor = config.get("rope_seq_len_interpolation_factor") or 1.0
    angle = torch.arange(len(x))[:, None] / factor * frequency
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    if config.get("rope_interleaved", True):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
