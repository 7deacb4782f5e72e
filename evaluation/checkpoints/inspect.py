"""Describe a checkpoint: its sizes, dtypes and features, and the context that it was trained for."""

import math
from collections import Counter
from typing import Any

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.huggingface_config import text_config

TRAINED = ("trained_sequence_length", "rotary_embedding")
"""Keys of a score's record and of tier files."""

_SIZES_AND_FEATURES = (
    *("layers", "hidden_size", "intermediate_size", "heads", "kv_heads", "head_dim"),
    *("tied_embeddings", "rope_theta", "rope_interleaved", "rope_factor", "qkv_bias"),
    *("sliding_window", "no_rope_layer", "mup"),
)


def describe(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return sizes, dtypes and features of a single checkpoint, ready for JSON; it must be complete."""
    check_complete(checkpoint)  # before all bytes are read for the identity
    is_nanotron = checkpoint.kind == "nanotron"
    return {
        "path": str(checkpoint.path),
        "kind": checkpoint.kind,
        "complete": True,
        "step": checkpoint.step,
        "identity": Contents().identity(checkpoint),
        "dtype": checkpoint.dtype,
        "vocab_size": checkpoint.vocab_size,
        "tokenizer": checkpoint.tokenizer_name,
        "sequence_length": checkpoint.sequence_length,
        "bytes": sum(header.size for header in checkpoint.headers),
        "files": len(checkpoint.headers),
        **(_nanotron(checkpoint) if is_nanotron else _huggingface(checkpoint)),
    }


def _huggingface(checkpoint: Checkpoint) -> dict[str, Any]:
    entries = [entry for header in checkpoint.headers for entry in header.tensors.values()]
    names = checkpoint.model_config.get("architectures") or [None]
    return {
        "parameters": sum(math.prod(entry.shape) for entry in entries),
        "tensors_by_dtype": dict(Counter(entry.dtype for entry in entries)),
        "model_class": names[0],
    }


def _nanotron(checkpoint: Checkpoint) -> dict[str, Any]:
    parameters, arch = checkpoint.parameters.values(), checkpoint.architecture
    shards = [shard for item in parameters for shard in item.shards]
    experts, used, _ = arch.expert_sizes or (None, None, None)
    return {
        "parameters": sum(math.prod(item.shape) for item in parameters),
        "tensors_by_dtype": dict(Counter(item.dtype for item in parameters)),
        "tp": max(shard.tp for shard in shards),
        "pp": max(shard.pp for shard in shards),
        "model_class": arch.transformers_model.class_name,
        **{name: getattr(arch, name, None) for name in _SIZES_AND_FEATURES},
        "experts": experts,
        "experts_per_token": used,
        "rope_scaling_left_out": checkpoint.model_config.get("rope_scaling") is not None,
    }


def trained_context(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the context that a model was trained for, which decides how it treats distant positions.

    Returns:
        `trained_sequence_length`: tokens of a training sequence; None if not recorded.
        `rotary_embedding`: base and scaling in words; None if there is no base.
    """
    values = checkpoint.sequence_length, _rotary_embedding(checkpoint)
    return dict(zip(TRAINED, values, strict=True))


def _rotary_embedding(checkpoint: Checkpoint) -> str | None:
    if checkpoint.kind == "nanotron":
        arch = checkpoint.architecture
        return _in_words(arch.rope_theta, "linear" if arch.rope_factor else None, arch.rope_factor)
    config = text_config(checkpoint.model_config)
    rope = config.get("rope_parameters") or config.get("rope_scaling")
    rope = rope if isinstance(rope, dict) else {}
    kind = rope.get("rope_type", rope.get("type"))
    return _in_words(rope.get("rope_theta", config.get("rope_theta")), kind, rope.get("factor"))


def _in_words(theta: Any, kind: Any, factor: Any) -> str | None:
    if not isinstance(theta, int | float):
        return None
    scaling = "" if kind in (None, "default") else f", {kind} scaling"
    by = f" by {factor:g}" if scaling and isinstance(factor, int | float) else ""
    return f"rope_theta {theta:,.12g}{scaling}{by}"
