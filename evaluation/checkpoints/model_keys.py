"""The keys of Nanotron's model configurations: which ones change what a model computes.

A branch of Nanotron may add keys. A key's name does not tell what it computes, so a model that sets an
unknown key is refused: without that key, another model would be scored.
"""

import functools
import logging
from typing import Any

from evaluation.checkpoints.config_files import Keys, short
from evaluation.checkpoints.nanotron_classes.base import NanotronClass
from evaluation.checkpoints.nanotron_classes.llama import SIZE_KEYS
from evaluation.checkpoints.nanotron_classes.registry import nanotron_classes
from evaluation.errors import UnsupportedCheckpoint

log = logging.getLogger(__name__)

_TRAINING = frozenset(
    "architectures bos_token_id dtype eos_token_id flex_attention_mask initializer_range log_attn_probs "
    "max_position_embeddings model_type pad_token_id pretraining_tp ring_attn_heads_k_stride rope_scaling "
    "router_aux_loss_coef token_dispatcher_type torch_dtype transformers_version use_cache "
    "z_loss_coefficient z_loss_enabled".split()
)
"""Keys that do not change what a model computes; `rope_scaling` is logged when a model is loaded."""

_PRIVATE = frozenset(
    "_attn_implementation _fused_rms_norm _fused_rotary_emb _is_using_mup _use_doc_masking "
    "_use_qkv_packed".split()
)
"""Keys of kernels and layouts that training used."""

_LOSS, _LOSS_IS_ON = "hybrid_bp_loss_", "hybrid_bp_loss_enabled"
"""Prefix of the keys of a loss of a branch, and the one that says whether it is on."""


def check_keys(keys: Keys, nanotron_class: NanotronClass) -> None:
    """Raise UnsupportedCheckpoint for an unknown key, which may change what the model computes."""
    neutral = _TRAINING | _PRIVATE
    name = nanotron_class.name
    _check_table(keys, nanotron_class.keys | nanotron_class.ignored_keys | neutral, name)
    for key, inner_keys in nanotron_class.inner_keys.items():
        table = keys.config.get(key)
        if isinstance(table, dict):
            inner = Keys(table, keys.where, f"{key}.")
            _check_table(inner, inner_keys | neutral, f"{name} (`{key}`)")


def _check_table(keys: Keys, accepted: frozenset[str], model: str) -> None:
    for key, value in keys.config.items():
        name = str(key)
        is_marker = name.startswith("is_") and name.endswith("_config")
        is_off = name.startswith(_LOSS) and not keys.config.get(_LOSS_IS_ON)
        if name in accepted or is_marker or is_off or _is_neutral(value):
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


def contradiction(first: dict[str, Any], second: dict[str, Any]) -> str | None:
    """Return the first key, or marker, that two configurations have with different values; or None."""
    keys = frozenset().union(*(item.keys for item in nanotron_classes()))
    for key in sorted(keys & first.keys() & second.keys()):
        # A size that is null has its default; a feature that is null is off.
        is_default = key in SIZE_KEYS and None in (first[key], second[key])
        if not is_default and not _are_same(first[key], second[key]):
            return key
    markers = [
        {str(key) for key, value in table.items() if str(key).startswith("is_") and value is True}
        for table in (first, second)
    ]
    if all(markers) and markers[0] != markers[1]:
        return min(markers[0] ^ markers[1])
    return None


def _are_same(first: Any, second: Any) -> bool:
    """Compare two values; YAML reads `1e-05` as text, so text that is a number counts as one."""
    try:
        if isinstance(first, dict) and isinstance(second, dict):
            return all(_are_same(first[key], second[key]) for key in first.keys() & second.keys())
        if isinstance(first, str) != isinstance(second, str):
            return float(first) == float(second)
        return bool(first == second)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
