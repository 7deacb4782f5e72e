"""How long a context a checkpoint was trained for, and how its model encodes positions."""

from typing import Any

from evaluation.checkpoints.format import Checkpoint, read_architecture, text_config

TRAINED = ("trained_sequence_length", "rotary_embedding")
"""Keys of a score's record and of tier files."""


def trained_context(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what decides how a model treats positions that are far apart.

    Returns:
        `trained_sequence_length`: tokens of a sequence in training, of a merge's longest member; None
        if not recorded. `rotary_embedding`: base and scaling in words; None if there is no base.
    """
    lengths = [one.sequence_length for one in checkpoint.parts if one.sequence_length is not None]
    values = max(lengths, default=None), _rotary_embedding(checkpoint)
    return dict(zip(TRAINED, values, strict=True))


def _rotary_embedding(checkpoint: Checkpoint) -> str | None:
    if checkpoint.kind == "nanotron":
        arch = read_architecture(checkpoint)
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
