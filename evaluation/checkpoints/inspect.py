"""Describe a checkpoint: its sizes and dtypes, and the context that it was trained for."""

from collections import Counter
from typing import Any

from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.huggingface_config import text_config
from evaluation.settings.steps import step_of_folder

TRAINED = ("trained_sequence_length", "rotary_embedding")
"""Keys of a score's record and of tier files."""


def describe(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what a single checkpoint holds, ready for JSON; it must be complete."""
    check_complete(checkpoint)  # before all bytes are read for the identity
    names = checkpoint.model_config.get("architectures") or [None]
    if checkpoint.kind == "nanotron":
        names = [checkpoint.architecture.transformers_model.class_name]
    return {
        "path": str(checkpoint.path),
        "kind": checkpoint.kind,
        "complete": True,
        "step": step_of_folder(checkpoint.path.resolve().name),
        "identity": Contents().identity(checkpoint),
        "model_class": names[0],
        "parameters": checkpoint.parameter_count,
        "dtype": checkpoint.dtype,
        "tensors_by_dtype": dict(Counter(tensor.dtype for tensor in checkpoint.tensors)),
        "vocab_size": checkpoint.vocab_size,
        "tokenizer": checkpoint.tokenizer_name,
        "use_mup": checkpoint.use_mup,
        **trained_context(checkpoint),
        "bytes": sum(header.size for header in checkpoint.headers),
        "files": len(checkpoint.headers),
    }


def trained_context(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the tokens of a training sequence, and the keys of the rotary embedding.

    They decide how a model treats distant positions; None if not recorded.
    """
    config = text_config(checkpoint.model_config)
    if checkpoint.kind == "nanotron":
        config = checkpoint.architecture.common_config()
    given = config.get("rope_parameters") or config.get("rope_scaling")
    rope = {"rope_theta": config.get("rope_theta")}
    rope |= given if isinstance(given, dict) else {}
    words = ", ".join(
        f"{key} {value:,.12g}" if isinstance(value, int | float) else f"{key} {value}"
        for key, value in sorted(rope.items())
        if value not in (None, "default")
    )
    return dict(zip(TRAINED, (checkpoint.sequence_length, words or None), strict=True))
