"""Read a Nanotron model configuration: which class it is of, and its sizes and features."""

from typing import Any

from evaluation.checkpoints.config_files import short, validated
from evaluation.checkpoints.nanotron_classes.base import NanotronModel
from evaluation.checkpoints.nanotron_classes.llama import Llama
from evaluation.checkpoints.nanotron_classes.qwen2 import Qwen2
from evaluation.checkpoints.nanotron_classes.starcoder2 import Starcoder2
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

CLASSES: tuple[type[NanotronModel], ...] = (Llama, Qwen2, Starcoder2)


def parse_architecture(
    config: dict[str, Any], use_mup: bool | None, sequence_length: int | None, where: str
) -> NanotronModel:
    """Read Nanotron's model configuration, with its older defaults where a key is absent.

    Args:
        config: Content of model_config.json, or of the same table in config.yaml.
        use_mup: Whether the model uses muP, which this configuration does not record; None if not known.
        sequence_length: Tokens of a training sequence; the model gets at least as many positions.

    Raises:
        UnsupportedCheckpoint: No class in transformers represents the model, or a key is unknown.
        CheckpointError: A value is missing or impossible.
    """
    kind = _marked_class(config, where)
    model = validated(kind, config, where, f"a key that Nanotron's {kind.label} does not have")
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


def _marked_class(config: dict[str, Any], where: str) -> type[NanotronModel]:
    """Return Nanotron's class of the model; raise for another one."""
    marked = [str(key) for key, value in config.items() if value is True]
    markers = [key for key in marked if key.startswith("is_") and key.endswith("_config")]
    classes = {kind.marker: kind for kind in CLASSES}
    if len(markers) == 1 and markers[0] in classes:
        return classes[markers[0]]
    named = ", ".join(markers)[:100] or "no `is_…_config` key"
    names = ", ".join(kind.label for kind in CLASSES)
    raise UnsupportedCheckpoint(f"{where}: {named} cannot be represented; Nanotron's {names} can")


def check_same(model: NanotronModel, other: NanotronModel, where: str) -> None:
    """Raise CheckpointError if config.yaml describes another model than model_config.json."""
    key, found = "is_…_config", (model.marker, other.marker)
    if type(model) is type(other):
        both = sorted(model.model_fields_set & other.model_fields_set)
        name = next((n for n in both if getattr(model, n) != getattr(other, n)), None)
        if name is None:
            return
        key = type(model).model_fields[name].alias or name
        found = getattr(model, name), getattr(other, name)
    raise CheckpointError(
        f"{where}: `{key}` is {short(found[0])}, but config.yaml has {short(found[1])} "
        "(`model.model_config`); copy both from the training run, or write the same into both if it was "
        "changed on purpose"
    )
