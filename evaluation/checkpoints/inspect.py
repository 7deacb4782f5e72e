"""Describe a checkpoint: its sizes and dtypes, and the context that it was trained for."""

import math
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
    entries: list[Any] = [e for header in checkpoint.headers for e in header.tensors.values()]
    names = checkpoint.model_config.get("architectures") or [None]
    if checkpoint.kind == "nanotron":
        entries = [*checkpoint.parameters.values()]
        names = [checkpoint.architecture.transformers_model.class_name]
    return {
        "path": str(checkpoint.path),
        "kind": checkpoint.kind,
        "complete": True,
        "step": step_of_folder(checkpoint.path.resolve().name),
        "identity": Contents().identity(checkpoint),
        "model_class": names[0],
        "parameters": sum(math.prod(entry.shape) for entry in entries),
        "dtype": checkpoint.dtype,
        "tensors_by_dtype": dict(Counter(entry.dtype for entry in entries)),
        "vocab_size": checkpoint.vocab_size,
        "tokenizer": checkpoint.tokenizer_name,
        "use_mup": checkpoint.use_mup,
        **trained_context(checkpoint),
        "bytes": sum(header.size for header in checkpoint.headers),
        "files": len(checkpoint.headers),
    }


def trained_context(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the tokens of a training sequence, and base and scaling of the rotary embedding in words.

    They decide how a model treats distant positions; None if not recorded.
    """
    theta: Any
    if checkpoint.kind == "nanotron":
        arch = checkpoint.architecture
        theta, factor = arch.rope_theta, arch.rope_factor
        kind = "linear" if factor else None
    else:
        config = text_config(checkpoint.model_config)
        rope = config.get("rope_parameters") or config.get("rope_scaling")
        rope = rope if isinstance(rope, dict) else {}
        theta, factor = rope.get("rope_theta", config.get("rope_theta")), rope.get("factor")
        kind = rope.get("rope_type", rope.get("type"))
    words = None
    if isinstance(theta, int | float):
        scaling = "" if kind in (None, "default") else f", {kind} scaling"
        by = f" by {factor:g}" if scaling and isinstance(factor, int | float) else ""
        words = f"rope_theta {theta:,.12g}{scaling}{by}"
    return dict(zip(TRAINED, (checkpoint.sequence_length, words), strict=True))
