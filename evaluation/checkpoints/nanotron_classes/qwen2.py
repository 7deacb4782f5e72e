"""Nanotron's Qwen2: its Llama with further features, which decide the class in transformers.

    experts                          Qwen2MoeForCausalLM
    layers without RoPE              SmolLM3ForCausalLM
    sliding window, or q/k/v biases  Qwen2ForCausalLM
    none of these                    LlamaForCausalLM

Further shapes, with E experts, hidden size h, intermediate size m:

    merged_gate_up_proj [E, h, 2m]   x @ W, so transposed; gate first
    merged_down_proj    [E, m, h]    also transposed
"""

from typing import Any

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.mapping import TensorSource, whole_tensor
from evaluation.checkpoints.nanotron_classes import llama
from evaluation.checkpoints.nanotron_classes.base import (
    Architecture,
    Experts,
    NanotronClass,
    TransformersModel,
)
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

_FEATURES = frozenset(
    "attention_bias moe_config no_rope_layer rope_seq_len_interpolation_factor sliding_window_size".split()
)
_EXPERTS = frozenset(
    "enable_shared_expert layers moe_intermediate_size num_experts shared_expert_intermediate_size "
    "top_k".split()
)


def _read(keys: Keys, use_mup: bool | None) -> Architecture:
    del use_mup  # Nanotron's Qwen2 ignores muP
    sizes = llama.read_sizes(keys)
    arch = Architecture(
        nanotron_class=NANOTRON_CLASS,
        rope_factor=keys.optional_number("rope_seq_len_interpolation_factor"),
        qkv_bias=keys.flag("attention_bias", False),
        sliding_window=keys.optional_count("sliding_window_size"),
        no_rope_layer=keys.optional_count("no_rope_layer"),
        experts=_read_experts(keys, sizes["layers"]),
        **sizes,
    )
    _check_features(arch, keys.where)
    return arch


def _read_experts(keys: Keys, total: int) -> Experts | None:
    config = keys.config.get("moe_config")
    if config is None:
        return None
    if not isinstance(config, dict):
        raise keys.wrong("moe_config", "a table")
    inner = Keys(config, keys.where, "moe_config.")
    layers = config.get("layers", [-1])
    if layers == [-1]:
        layers = list(range(total))
    if not isinstance(layers, list) or any(
        type(layer) is not int or not 0 <= layer < total for layer in layers
    ):
        raise inner.wrong("layers", f"layers from 0 to {total - 1}")
    shared = inner.flag("enable_shared_expert", False)
    return Experts(
        layers=tuple(sorted(set(layers))),
        number=inner.count("num_experts"),
        per_token=inner.count("top_k"),
        intermediate_size=inner.count("moe_intermediate_size"),
        shared_size=inner.count("shared_expert_intermediate_size") if shared else None,
    )


def _check_features(arch: Architecture, where: str) -> None:
    """Raise for features that no class of transformers has together, and for too few experts."""
    if arch.experts is None:
        return
    for value, feature in (
        (arch.no_rope_layer, "layers without RoPE (`no_rope_layer`)"),
        (arch.sliding_window, "a sliding window (`sliding_window_size`)"),
    ):
        if value is not None:
            raise UnsupportedCheckpoint(
                f"{where}: experts (`moe_config`) together with {feature} cannot be represented by any "
                "class of transformers; score it by a `command` of your own"
            )
    if arch.experts.per_token > arch.experts.number:
        raise CheckpointError(
            f"{where}: `moe_config.top_k` is larger than `moe_config.num_experts`; correct one of them"
        )


def _transformers_model(arch: Architecture) -> TransformersModel:
    if arch.experts is not None:
        return _with_experts(arch, arch.experts)
    norm = {"rms_norm_eps": arch.norm_eps}
    windows = {
        "use_sliding_window": arch.sliding_window is not None,
        "sliding_window": arch.sliding_window,
        # Stated layer by layer: SmolLM3's default puts the window on the layers without RoPE.
        "layer_types": [
            "sliding_attention" if arch.sliding_window and roped else "full_attention"
            for roped in arch.roped
        ],
    }
    attentions = [f"model.layers.{layer}.self_attn" for layer in range(arch.layers)]
    if arch.no_rope_layer is not None:
        config = {
            **norm, **windows,
            "no_rope_layers": [int(roped) for roped in arch.roped],
            "attention_bias": arch.qkv_bias,
        }  # fmt: skip
        zeros = frozenset(f"{name}.o_proj.bias" for name in attentions if arch.qkv_bias)
        return TransformersModel(class_name="SmolLM3ForCausalLM", config=config, zeros=zeros)
    if arch.sliding_window is not None or arch.qkv_bias:
        biases = [] if arch.qkv_bias else attentions
        zeros = frozenset(f"{name}.{part}_proj.bias" for name in biases for part in "qkv")
        return TransformersModel(
            class_name="Qwen2ForCausalLM", config={**norm, **windows}, zeros=zeros
        )
    return TransformersModel(
        class_name="LlamaForCausalLM", config={**norm, "attention_bias": False, "mlp_bias": False}
    )


def _with_experts(arch: Architecture, experts: Experts) -> TransformersModel:
    config: dict[str, Any] = {
        "rms_norm_eps": arch.norm_eps,
        "qkv_bias": arch.qkv_bias,
        "num_experts": experts.number,
        "num_experts_per_tok": experts.per_token,
        "moe_intermediate_size": experts.intermediate_size,
        "shared_expert_intermediate_size": experts.shared_size or 1,
        "norm_topk_prob": False,
        "decoder_sparse_step": 1,
        "mlp_only_layers": sorted(set(range(arch.layers)) - set(experts.layers)),
        "use_sliding_window": False,
    }
    shared = ("_gate", ".gate_proj", ".up_proj", ".down_proj")
    zeros = frozenset(
        f"model.layers.{layer}.mlp.shared_expert{part}.weight"
        for layer in experts.layers
        for part in shared
        if experts.shared_size is None
    )
    return TransformersModel(class_name="Qwen2MoeForCausalLM", config=config, zeros=zeros)


def _layer(arch: Architecture, layer: int) -> dict[str, TensorSource]:
    if arch.experts is None or layer not in arch.experts.layers:
        return llama.dense_layer(arch, layer)
    ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
    return {
        **llama.norms(ours, theirs, arch.hidden_size),
        **llama.attention(f"{ours}.attn", f"{theirs}.self_attn", arch),
        **_experts(f"{ours}.mlp", f"{theirs}.mlp", arch.hidden_size, arch.experts),
    }


def _experts(ours: str, theirs: str, hidden: int, experts: Experts) -> dict[str, TensorSource]:
    number, size = experts.number, experts.intermediate_size
    sources = {
        f"{ours}.router.weight": whole_tensor(f"{theirs}.gate.weight", (number, hidden)),
        f"{ours}.experts.merged_gate_up_proj": whole_tensor(
            f"{theirs}.experts.gate_up_proj", (number, hidden, 2 * size), transposed=True
        ),
        f"{ours}.experts.merged_down_proj": whole_tensor(
            f"{theirs}.experts.down_proj", (number, size, hidden), transposed=True
        ),
    }
    if experts.shared_size is not None:
        shared = "shared_expert"
        sources |= llama.gated(
            f"{ours}.{shared}", f"{theirs}.{shared}", hidden, experts.shared_size
        )
        gate = f"{shared}_gate.weight"
        sources[f"{ours}.{gate}"] = whole_tensor(f"{theirs}.{gate}", (1, hidden))
    return sources


NANOTRON_CLASS = NanotronClass(
    name="Qwen2",
    marker="is_qwen2_config",
    keys=llama.SIZE_KEYS | _FEATURES,
    inner_keys={"moe_config": _EXPERTS},
    read=_read,
    transformers_model=_transformers_model,
    parameters=lambda arch: llama.parameters(arch, _layer),
    heeds_documents=True,
    config_class="Qwen2Config",
)
