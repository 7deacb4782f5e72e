"""Which keys of Nanotron's model configuration make the model, and which only how it was trained.

A branch of Nanotron may add keys. What one of them computes cannot be told from its name, so that
a model that sets one is refused: scored without it, it would be another model.
"""

from typing import Any

from evaluation.checkpoints.keys import Keys, short
from evaluation.errors import UnsupportedCheckpoint

MODEL = frozenset(
    "hidden_act hidden_size intermediate_size num_attention_heads num_hidden_layers num_key_value_heads "
    "rms_norm_eps rope_interleaved rope_theta tie_word_embeddings vocab_size".split()
)
"""What both of Nanotron's classes compute by."""

QWEN2 = frozenset(
    "attention_bias moe_config no_rope_layer rope_seq_len_interpolation_factor sliding_window_size".split()
)
"""What Nanotron's Qwen2 computes by beside them."""

EXPERTS = frozenset(
    "enable_shared_expert layers moe_intermediate_size num_experts shared_expert_intermediate_size "
    "top_k".split()
)

_TRAINING = frozenset(
    "architectures bos_token_id dtype eos_token_id flex_attention_mask initializer_range log_attn_probs "
    "max_position_embeddings model_type pad_token_id pretraining_tp ring_attn_heads_k_stride rope_scaling "
    "router_aux_loss_coef token_dispatcher_type torch_dtype transformers_version use_cache "
    "z_loss_coefficient z_loss_enabled".split()
)
"""Keys that Nanotron's models do not compute by; `rope_scaling` is told of where a model is loaded."""


def check_known(keys: Keys, *, llama: bool) -> None:
    """Raises UnsupportedCheckpoint for a key that may change the model in a way unknown here."""
    # Nanotron's Llama has an `attention_bias` of which it makes nothing.
    known = MODEL | _TRAINING | ({"attention_bias"} if llama else QWEN2)
    _check(keys, known, "Llama" if llama else "Qwen2")
    experts = keys.given("moe_config")
    if not llama and isinstance(experts, dict):
        _check(Keys(experts, keys.where, "moe_config."), EXPERTS | _TRAINING, "mixture of experts")


def _check(keys: Keys, known: frozenset[str], model: str) -> None:
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
    """Nothing, none, zero, or a factor of 1.0."""
    return value is None or value in (False, "", 0) or value in ([], {}) or repr(value) == "1.0"


def contradiction(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """The key of a model that both configurations give, with different values; None if there is none."""
    for key in sorted((MODEL | QWEN2) & one.keys() & other.keys()):
        is_default = key in MODEL and None in (one[key], other[key])
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
    """YAML reads `1e-05` as text, so text that is a number counts as one."""
    try:
        if isinstance(one, dict) and isinstance(other, dict):
            return all(_are_same(one[key], other[key]) for key in one.keys() & other.keys())
        if isinstance(one, str) != isinstance(other, str):
            return float(one) == float(other)
        return bool(one == other)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
