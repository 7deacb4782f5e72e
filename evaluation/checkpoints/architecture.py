"""Read a Nanotron model configuration: the sizes and features of the model that it describes."""

from dataclasses import dataclass
from typing import Any

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.model_keys import Family, check_known
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

_MOST_LAYERS = 10_000
"""A larger number is a mistake, and must not cost memory."""

_MARKERS: dict[str, Family] = {
    "is_llama_config": "Llama", "is_qwen2_config": "Qwen2", "is_starcoder2_config": "Starcoder2",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Mixture of experts of some layers."""

    layers: tuple[int, ...]
    number: int
    per_token: int
    intermediate_size: int
    shared_size: int | None
    """Width of the shared expert; None if there is none."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Everything about a Nanotron model that shapes its weights or its forward pass."""

    family: Family
    """Nanotron's class: Llama and Starcoder2 ignore documents, Qwen2 does not."""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    activation: str
    norm_eps: float
    tied_embeddings: bool
    positions: int
    rope_theta: float
    rope_interleaved: bool
    rope_factor: float | None
    """Positions are divided by it."""
    qkv_bias: bool
    sliding_window: int | None
    """Tokens that a token attends to in a layer with RoPE, itself included."""
    no_rope_layer: int | None
    """Layers n, 2n, … (counted from 1) have no RoPE."""
    mup: bool
    """Attention is scaled by 1/head_dim in place of 1/sqrt(head_dim)."""
    experts: Experts | None

    @property
    def head_dim(self) -> int:
        """Size of an attention head."""
        return self.hidden_size // self.heads

    @property
    def roped(self) -> tuple[bool, ...]:
        """For each layer, whether it has RoPE."""
        return tuple(
            self.no_rope_layer is None or (layer + 1) % self.no_rope_layer != 0
            for layer in range(self.layers)
        )


def parse_architecture(
    config: dict[str, Any], use_mup: bool | None, sequence_length: int | None, where: str
) -> Architecture:
    """Read Nanotron's model configuration.

    Args:
        config: Content of model_config.json, or of the same table in config.yaml.
        use_mup: Whether the model uses muP, which this configuration does not record; None if not known.
        sequence_length: Tokens of a training sequence; the model gets at least as many positions.
        where: File that the configuration was read from, for messages.

    Returns:
        Sizes and features, with Nanotron's older defaults where a key is absent.

    Raises:
        UnsupportedCheckpoint: No class in transformers represents the model.
        CheckpointError: A value is missing or impossible.
    """
    keys = Keys(config, where)
    family = _family(keys)
    if family == "Starcoder2":
        return _starcoder2(keys, sequence_length)
    llama = family == "Llama"
    heads = keys.count("num_attention_heads")
    found = Architecture(
        family=family,
        vocab_size=keys.count("vocab_size"),
        hidden_size=keys.count("hidden_size"),
        intermediate_size=keys.count("intermediate_size"),
        layers=keys.count("num_hidden_layers", most=_MOST_LAYERS),
        heads=heads,
        kv_heads=keys.count("num_key_value_heads", heads),
        activation=str(keys.config.get("hidden_act", "silu")),
        norm_eps=keys.number("rms_norm_eps", 1e-6),
        tied_embeddings=keys.flag("tie_word_embeddings", False),
        positions=max(keys.count("max_position_embeddings", 1), sequence_length or 1),
        # Checkpoints that are older than these two keys were computed with these values.
        rope_theta=keys.number("rope_theta", 10_000.0),
        rope_interleaved=keys.flag("rope_interleaved", True),
        rope_factor=None if llama else keys.optional_number("rope_seq_len_interpolation_factor"),
        qkv_bias=not llama and keys.flag("attention_bias", False),
        sliding_window=None if llama else keys.optional_count("sliding_window_size"),
        no_rope_layer=None if llama else keys.optional_count("no_rope_layer"),
        mup=llama and _uses_mup(use_mup, where),
        experts=None if llama else _read_experts(keys),
    )
    _check_possible(found, keys.where)
    return found


def _family(keys: Keys) -> Family:
    """Return Nanotron's class of the model; raise for another one, and for unknown keys."""
    marked = [str(key) for key, value in keys.config.items() if value is True]
    models = [key for key in marked if key.startswith("is_") and key.endswith("_config")]
    if len(models) == 1 and models[0] in _MARKERS:
        check_known(keys, _MARKERS[models[0]])
        return _MARKERS[models[0]]
    named = ", ".join(models)[:100] or "no `is_…_config` key"
    raise UnsupportedCheckpoint(
        f"{keys.where}: {named} cannot be represented; Nanotron's {', '.join(_MARKERS.values())} can"
    )


def _starcoder2(keys: Keys, sequence_length: int | None) -> Architecture:
    """Read the configuration of Nanotron's Starcoder2 with grouped queries, whose embedding is tied."""
    for key, value in (
        ("grouped_query", True),
        ("multi_query", False),
        ("use_rotary_embeddings", True),
        ("use_position_embeddings", False),
        ("scale_attn_weights", True),
    ):
        if keys.flag(key, value) is not value:
            raise UnsupportedCheckpoint(
                f"{keys.where}: `{key}` is {str(not value).lower()}, for which no checkpoint of Nanotron "
                "could be compared with its own logits; score it by a `command` of your own"
            )
    window = keys.optional_count("sliding_window_size")
    if window is not None and keys.config.get("global_attn_layers"):
        raise UnsupportedCheckpoint(
            f"{keys.where}: `sliding_window_size` with `global_attn_layers` cannot be represented by "
            "transformers' Starcoder2; score it by a `command` of your own"
        )
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    found = Architecture(
        family="Starcoder2",
        vocab_size=keys.count("vocab_size"),
        hidden_size=hidden,
        intermediate_size=keys.count("intermediate_size", 4 * hidden),
        layers=keys.count("num_hidden_layers", most=_MOST_LAYERS),
        heads=heads,
        kv_heads=keys.count("num_kv_heads"),
        activation=str(keys.config.get("activation_function", "gelu_pytorch_tanh")),
        norm_eps=keys.number("layer_norm_epsilon", 1e-5),
        tied_embeddings=True,
        positions=max(keys.count("max_position_embeddings", 1), sequence_length or 1),
        rope_theta=keys.number("rope_theta", 10_000.0),
        rope_interleaved=False,
        rope_factor=None,
        qkv_bias=True,
        sliding_window=window,
        no_rope_layer=None,
        mup=False,
        experts=None,
    )
    _check_possible(found, keys.where)
    return found


def _uses_mup(use_mup: bool | None, where: str) -> bool:
    if use_mup is None:
        raise CheckpointError(
            f"{where}: config.yaml is missing next to it, and only that file records whether the model "
            "uses muP; copy it from the training run, or state it: in the stage by "
            "`assume: {use_mup: false}`, for a command by `--no-use-mup`"
        )
    return use_mup


def _read_experts(keys: Keys) -> Experts | None:
    config = keys.config.get("moe_config")
    if config is None:
        return None
    if not isinstance(config, dict):
        raise keys.wrong("moe_config", "a table")
    inner = Keys(config, keys.where, "moe_config.")
    total = keys.count("num_hidden_layers", most=_MOST_LAYERS)
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


def _check_possible(found: Architecture, where: str) -> None:
    for is_set, feature in (
        (found.no_rope_layer, "layers without RoPE (`no_rope_layer`)"),
        (found.sliding_window, "a sliding window (`sliding_window_size`)"),
    ):
        if found.experts is not None and is_set is not None:
            raise UnsupportedCheckpoint(
                f"{where}: experts (`moe_config`) together with {feature} cannot be represented by any "
                "class of transformers; score it by a `command` of your own"
            )
    if found.experts is not None and found.experts.per_token > found.experts.number:
        raise CheckpointError(
            f"{where}: `moe_config.top_k` is larger than `moe_config.num_experts`; correct one of them"
        )
    if found.hidden_size % found.heads or found.head_dim % 2:
        raise CheckpointError(
            f"{where}: `hidden_size` {found.hidden_size} cannot be split into {found.heads} heads of "
            "an even size; correct the configuration"
        )
    if found.heads % found.kv_heads:
        raise CheckpointError(
            f"{where}: `num_attention_heads` {found.heads} is not a multiple of "
            f"`num_key_value_heads` {found.kv_heads}; correct one of them"
        )
