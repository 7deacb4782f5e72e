"""Nanotron's Llama.

Shapes of parameters, with H query heads and K key-value heads of size d, hidden size h, intermediate size m:

    qkv_proj.weight     [(H + 2K) d, h]   rows of q, then k, then v
    gate_up_proj.weight [2m, h]           rows of gate, then up
"""

import math
from collections.abc import Callable
from typing import Any

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.mapping import Target, TensorSource, whole_tensor
from evaluation.checkpoints.nanotron_classes.base import (
    MOST_LAYERS,
    Architecture,
    NanotronClass,
    TransformersModel,
)
from evaluation.errors import CheckpointError

SIZE_KEYS = frozenset(
    "hidden_act hidden_size intermediate_size num_attention_heads num_hidden_layers num_key_value_heads "
    "rms_norm_eps rope_interleaved rope_theta tie_word_embeddings vocab_size".split()
)
"""Keys that change what a model computes, in Llama and in the classes that were made from it."""


def read_sizes(keys: Keys) -> dict[str, Any]:
    """Return the fields of `Architecture` that are read from `SIZE_KEYS`."""
    heads = keys.count("num_attention_heads")
    return {
        "vocab_size": keys.count("vocab_size"),
        "hidden_size": keys.count("hidden_size"),
        "intermediate_size": keys.count("intermediate_size"),
        "layers": keys.count("num_hidden_layers", most=MOST_LAYERS),
        "heads": heads,
        "kv_heads": keys.count("num_key_value_heads", heads),
        "activation": str(keys.config.get("hidden_act", "silu")),
        "norm_eps": keys.number("rms_norm_eps", 1e-6),
        "tied_embeddings": keys.flag("tie_word_embeddings", False),
        "positions": keys.count("max_position_embeddings", 1),
        # Checkpoints that are older than these two keys were computed with these values.
        "rope_theta": keys.number("rope_theta", 10_000.0),
        "rope_interleaved": keys.flag("rope_interleaved", True),
    }


def parameters(
    arch: Architecture, layer_parameters: Callable[[Architecture, int], dict[str, TensorSource]]
) -> dict[str, TensorSource]:
    """Return the embedding, the last norm, the head, and what `layer_parameters` gives for each layer."""
    vocabulary = (arch.vocab_size, arch.hidden_size)
    sources = {
        "model.token_position_embeddings.pp_block.token_embedding.weight": whole_tensor(
            "model.embed_tokens.weight", vocabulary
        ),
        "model.final_layer_norm.pp_block.weight": whole_tensor(
            "model.norm.weight", (arch.hidden_size,)
        ),
    }
    if not arch.tied_embeddings:
        sources["model.lm_head.pp_block.weight"] = whole_tensor("lm_head.weight", vocabulary)
    for layer in range(arch.layers):
        sources |= layer_parameters(arch, layer)
    return sources


def dense_layer(arch: Architecture, layer: int) -> dict[str, TensorSource]:
    """Return the parameters of a layer with attention and one gated feed-forward block."""
    ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
    return {
        **norms(ours, theirs, arch.hidden_size),
        **attention(f"{ours}.attn", f"{theirs}.self_attn", arch),
        **gated(f"{ours}.mlp", f"{theirs}.mlp", arch.hidden_size, arch.intermediate_size),
    }


def norms(ours: str, theirs: str, hidden: int) -> dict[str, TensorSource]:
    """Return the two norms of a layer."""
    names = ("input_layernorm.weight", "post_attention_layernorm.weight")
    return {f"{ours}.{name}": whole_tensor(f"{theirs}.{name}", (hidden,)) for name in names}


def attention(ours: str, theirs: str, arch: Architecture) -> dict[str, TensorSource]:
    """Return the projections of an attention, with biases of q, k and v if the model has them."""
    q_rows, kv_rows = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    rows = q_rows + 2 * kv_rows
    pairs = arch.head_dim if arch.rope_interleaved else None
    divisor = math.sqrt(arch.head_dim) if arch.mup else 1.0

    def split(kind: str) -> tuple[Target, ...]:
        return (
            Target(f"{theirs}.q_proj.{kind}", 0, q_rows, pairs, divisor),
            Target(f"{theirs}.k_proj.{kind}", q_rows, q_rows + kv_rows, pairs),
            Target(f"{theirs}.v_proj.{kind}", q_rows + kv_rows, rows),
        )

    sources = {
        f"{ours}.qkv_proj.weight": TensorSource((rows, arch.hidden_size), split("weight")),
        f"{ours}.o_proj.weight": whole_tensor(
            f"{theirs}.o_proj.weight", (arch.hidden_size, q_rows)
        ),
    }
    if arch.qkv_bias:
        sources[f"{ours}.qkv_proj.bias"] = TensorSource((rows,), split("bias"))
    return sources


def gated(ours: str, theirs: str, hidden: int, size: int) -> dict[str, TensorSource]:
    """Return the projections of a gated feed-forward block."""
    gate_up = (
        Target(f"{theirs}.gate_proj.weight", 0, size),
        Target(f"{theirs}.up_proj.weight", size, 2 * size),
    )
    return {
        f"{ours}.gate_up_proj.weight": TensorSource((2 * size, hidden), gate_up),
        f"{ours}.down_proj.weight": whole_tensor(f"{theirs}.down_proj.weight", (hidden, size)),
    }


def _read(keys: Keys, use_mup: bool | None) -> Architecture:
    sizes = read_sizes(keys)
    if use_mup is None:
        raise CheckpointError(
            f"{keys.where}: config.yaml is missing next to it, and only that file records whether the model "
            "uses muP; copy it from the training run, or state it: in the stage by "
            "`assume: {use_mup: false}`, for a command by `--no-use-mup`"
        )
    return Architecture(nanotron_class=NANOTRON_CLASS, mup=use_mup, **sizes)


def _transformers_model(arch: Architecture) -> TransformersModel:
    config = {"rms_norm_eps": arch.norm_eps, "attention_bias": False, "mlp_bias": False}
    return TransformersModel(class_name="LlamaForCausalLM", config=config)


NANOTRON_CLASS = NanotronClass(
    name="Llama",
    marker="is_llama_config",
    keys=SIZE_KEYS,
    ignored_keys=frozenset({"attention_bias"}),
    read=_read,
    transformers_model=_transformers_model,
    parameters=lambda arch: parameters(arch, dense_layer),
    heeds_documents=False,
    config_class="LlamaConfig",
)
