"""The keys of Nanotron's model configurations: which ones change what a model computes.

A branch of Nanotron may add keys. A key's name does not tell what it computes, so a model that sets an
unknown key is refused: without that key, another model would be scored.
"""

import functools
import logging
from typing import Any, Literal

from evaluation.checkpoints.config_files import Keys, short
from evaluation.errors import UnsupportedCheckpoint

log = logging.getLogger(__name__)

Family = Literal["Llama", "Qwen2", "Starcoder2"]

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

_STARCODER2 = frozenset(
    "activation_function global_attn_layers grouped_query hidden_size intermediate_size layer_norm_epsilon "
    "multi_query num_attention_heads num_hidden_layers num_kv_heads rope_theta scale_attn_weights "
    "sliding_window_size use_position_embeddings use_rotary_embeddings vocab_size".split()
)
"""Keys that change what Nanotron's Starcoder2 computes."""

_STARCODER2_TRAINING = frozenset(
    "attention_softmax_in_fp32 attn_pdrop embd_pdrop resid_pdrop scale_attention_softmax_in_fp32".split()
)

_PRIVATE = frozenset(
    "_attn_implementation _fused_rms_norm _fused_rotary_emb _is_using_mup _use_doc_masking "
    "_use_qkv_packed".split()
)
"""Keys of kernels and layouts that training used."""

_LOSS, _LOSS_IS_ON = "hybrid_bp_loss_", "hybrid_bp_loss_enabled"
"""Prefix of the keys of a loss of a branch, and the one that says whether it is on."""


def check_known(keys: Keys, family: Family) -> None:
    """Raise UnsupportedCheckpoint for an unknown key, which may change what the model computes."""
    # Nanotron's Llama has a key `attention_bias`, but ignores it.
    known = {
        "Llama": _MODEL | _TRAINING | {"attention_bias"},
        "Qwen2": _MODEL | _TRAINING | _QWEN2,
        "Starcoder2": _STARCODER2 | _STARCODER2_TRAINING | _TRAINING,
    }
    _check_keys(keys, known[family] | _PRIVATE, family)
    experts = keys.config.get("moe_config")
    if family == "Qwen2" and isinstance(experts, dict):
        inner = Keys(experts, keys.where, "moe_config.")
        _check_keys(inner, _EXPERTS | _TRAINING | _PRIVATE, "mixture of experts")


def _check_keys(keys: Keys, known: frozenset[str], model: str) -> None:
    for key, value in keys.config.items():
        name = str(key)
        is_marker = name.startswith("is_") and name.endswith("_config")
        is_off = name.startswith(_LOSS) and not keys.config.get(_LOSS_IS_ON)
        if name in known or is_marker or is_off or _is_neutral(value):
            continue
        if name.startswith("_"):
            _warn_of_private(keys.where, keys.prefix + name, short(value))
            continue
        raise UnsupportedCheckpoint(
            f"{keys.where}: {short(keys.prefix + name)} is {short(value)}, a key that Nanotron's {model} "
            "does not have and that may change what is computed; score it by a `command` of your own, "
            "or take the key out if it changes nothing"
        )


@functools.cache
def _warn_of_private(where: str, name: str, value: str) -> None:
    """Warn once: such keys choose kernels and layouts of training, but a branch may do otherwise."""
    log.warning(
        "%s: `%s` is %s, a private key that is not known here; the model is read without it", where,
        name, value,
    )  # fmt: skip


def _is_neutral(value: Any) -> bool:
    """Return whether a value is empty, null, false, zero, or a factor of 1.0."""
    return value is None or value in (False, "", 0) or value in ([], {}) or repr(value) == "1.0"


def contradiction(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Return a key that has different values in two model configurations.

    Args:
        other: Another one, which may have fewer keys.

    Returns:
        The first such key, or a model's marker; None if they agree.
    """
    for key in sorted((_MODEL | _QWEN2 | _STARCODER2) & one.keys() & other.keys()):
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
