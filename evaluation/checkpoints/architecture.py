"""Read a Nanotron model configuration: the sizes and features of the model that it describes.

A branch of Nanotron may add keys. A key's name does not tell what it computes, so a model that sets an
unknown key is refused: without that key, another model would be scored.
"""

from dataclasses import dataclass
from typing import Any

from evaluation.checkpoints.config_files import Keys, short
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

_MOST_LAYERS = 10_000
"""A larger number is a mistake, and must not cost memory."""

_MODEL = frozenset(
    "hidden_act hidden_size intermediate_size num_attention_heads num_hidden_layers num_key_value_heads "
    "rms_norm_eps rope_interleaved rope_theta tie_word_embeddings vocab_size".split()
)
"""Keys that change what both of Nanotron's classes compute."""

_QWEN2 = frozenset(
    "attention_bias moe_config no_rope_layer rope_seq_len_interpolation_factor sliding_window_size".split()
)
"""Further keys that change what Nanotron's Qwen2 computes."""

_EXPERTS = frozenset(
    "enable_shared_expert layers moe_intermediate_size num_experts shared_expert_intermediate_size "
    "top_k".split()
)

_TRAINING = frozenset(
    "architectures bos_token_id dtype eos_token_id flex_attention_mask initializer_range log_attn_probs "
    "max_position_embeddings model_type pad_token_id pretraining_tp ring_attn_heads_k_stride rope_scaling "
    "router_aux_loss_coef token_dispatcher_type torch_dtype transformers_version use_cache "
    "z_loss_coefficient z_loss_enabled".split()
)
"""Keys that do not change what a model computes; `rope_scaling` is logged when a model is loaded."""


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

    llama: bool
    """Whether it is Nanotron's LlamaForTraining, which ignores documents, or its Qwen2ForTraining."""
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
    llama = _is_llama(keys)
    heads = keys.count("num_attention_heads")
    found = Architecture(
        llama=llama,
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


def _is_llama(keys: Keys) -> bool:
    """Return whether the class is Nanotron's Llama; raise unless it is Llama or Qwen2 with known keys."""
    marked = [str(key) for key, value in keys.config.items() if value is True]
    models = [key for key in marked if key.startswith("is_") and key.endswith("_config")]
    if models in (["is_llama_config"], ["is_qwen2_config"]):
        llama = models == ["is_llama_config"]
        _check_known(keys, llama=llama)
        return llama
    named = ", ".join(models)[:100] or "no `is_…_config` key"
    if "is_starcoder2_config" in models:
        named = "Starcoder2"
    raise UnsupportedCheckpoint(
        f"{keys.where}: {named} cannot be represented; Nanotron's Llama and Qwen2 can"
    )


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


def _check_known(keys: Keys, *, llama: bool) -> None:
    """Raise UnsupportedCheckpoint for an unknown key, which may change what the model computes."""
    # Nanotron's Llama has a key `attention_bias`, but ignores it.
    known = _MODEL | _TRAINING | ({"attention_bias"} if llama else _QWEN2)
    _check_keys(keys, known, "Llama" if llama else "Qwen2")
    experts = keys.config.get("moe_config")
    if not llama and isinstance(experts, dict):
        _check_keys(
            Keys(experts, keys.where, "moe_config."), _EXPERTS | _TRAINING, "mixture of experts"
        )


def _check_keys(keys: Keys, known: frozenset[str], model: str) -> None:
    for key, value in keys.config.items():
        name = str(key)
        is_marker = name.startswith("is_") and name.endswith("_config")
        is_private = name.startswith("_")  # which kernels and layouts training used
        if name in known or is_marker or is_private or _is_neutral(value):
            continue
        raise UnsupportedCheckpoint(
            f"{keys.where}: {short(keys.prefix + name)} is {short(value)}, a key that Nanotron's {model} "
            "does not have and that may change what is computed; score it by a `command` of your own, "
            "or take the key out if it changes nothing"
        )


def _is_neutral(value: Any) -> bool:
    """Return whether a value is empty, null, false, zero, or a factor of 1.0."""
    return value is None or value in (False, "", 0) or value in ([], {}) or repr(value) == "1.0"


def contradiction(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Return a key that has different values in two model configurations.

    Args:
        one: A model configuration.
        other: Another one, which may have fewer keys.

    Returns:
        The first such key, or a model's marker; None if they agree.
    """
    for key in sorted((_MODEL | _QWEN2) & one.keys() & other.keys()):
        is_default = key in _MODEL and None in (one[key], other[key])
        if not is_default and not _are_same(one[key], other[key]):
            return key
    markers = [
        {str(key) for key, value in table.items() if str(key).startswith("is_") and value is True}
        for table in (one, other)
    ]
    if all(markers) and markers[0] != markers[1]:
        return min(markers[0] ^ markers[1])
    return None


def _are_same(one: Any, other: Any) -> bool:
    """Compare two values; YAML reads `1e-05` as text, so text that is a number counts as one."""
    try:
        if isinstance(one, dict) and isinstance(other, dict):
            return all(_are_same(one[key], other[key]) for key in one.keys() & other.keys())
        if isinstance(one, str) != isinstance(other, str):
            return float(one) == float(other)
        return bool(one == other)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
