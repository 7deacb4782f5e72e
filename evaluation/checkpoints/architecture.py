"""Read a Nanotron model configuration: which class it is of, and its sizes and features."""

from typing import Any

from evaluation.checkpoints.config_files import short, validated
from evaluation.checkpoints.nanotron_classes.base import NanotronModel
from evaluation.checkpoints.nanotron_classes.llama import Llama
from evaluation.checkpoints.nanotron_classes.qwen2 import Qwen2
from evaluation.checkpoints.nanotron_classes.starcoder2 import Starcoder2
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

CLASSES: dict[str, type[NanotronModel]] = {
    "is_llama_config": Llama,
    "is_qwen2_config": Qwen2,
    "is_starcoder2_config": Starcoder2,
}
"""By the key that is true in a class's configurations."""


def parse_architecture(
    config: dict[str, Any], use_mup: bool | None, sequence_length: int | None, where: str
) -> NanotronModel:
    """Read Nanotron's model configuration, with its older defaults where a key is absent.

    Args:
        use_mup: Whether the model uses muP, which this configuration does not record; None if not known.
        sequence_length: Tokens of a training sequence; the model gets at least as many positions.

    Raises UnsupportedCheckpoint if no class of transformers represents it, or as `validated`.
    """
    marked = [str(key) for key, value in config.items() if value is True]
    markers = [key for key in marked if key.startswith("is_") and key.endswith("_config")]
    if len(markers) != 1 or markers[0] not in CLASSES:
        named = ", ".join(markers)[:100] or "no `is_…_config` key"
        known = ", ".join(kind.__name__ for kind in CLASSES.values())
        raise UnsupportedCheckpoint(
            f"{where}: {named} cannot be represented; Nanotron's {known} can"
        )
    kind = CLASSES[markers[0]]
    model = validated(kind, config, where, f"Nanotron's {kind.__name__}")
    if kind.heeds_mup and use_mup is None:
        raise CheckpointError(
            f"{where}: config.yaml is missing next to it, and only that file records whether the model "
            "uses muP; copy it from the training run, or state it: in the stage by "
            "`assume: {use_mup: false}`, for a command by `--no-use-mup`"
        )
    positions = max(model.positions, sequence_length or 1)
    model = model.model_copy(update={"positions": positions})
    model._mup = kind.heeds_mup and bool(use_mup)
    return model


def check_same(model: NanotronModel, other: NanotronModel, where: str) -> None:
    """Raise CheckpointError if config.yaml describes another model than model_config.json."""
    ours, theirs = (
        {"class": type(m).__name__, **m.model_dump(by_alias=True)} for m in (model, other)
    )
    both = (ours.keys() & theirs.keys()) - {"max_position_embeddings"}
    for key in sorted(key for key in both if ours[key] != theirs[key])[:1]:
        raise CheckpointError(
            f"{where}: `{key}` is {short(ours[key])}, but config.yaml has {short(theirs[key])} "
            "(`model.model_config`); copy both from the training run, or write the same into both if it "
            "was changed on purpose"
        )
