"""Read a Nanotron model configuration: the sizes and features of the model that it describes."""

from dataclasses import replace
from typing import Any

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.model_keys import check_keys
from evaluation.checkpoints.nanotron_classes.base import Architecture, NanotronClass
from evaluation.checkpoints.nanotron_classes.registry import nanotron_classes
from evaluation.errors import CheckpointError, UnsupportedCheckpoint


def parse_architecture(
    config: dict[str, Any], use_mup: bool | None, sequence_length: int | None, where: str
) -> Architecture:
    """Read Nanotron's model configuration, with its older defaults where a key is absent.

    Args:
        config: Content of model_config.json, or of the same table in config.yaml.
        use_mup: Whether the model uses muP, which this configuration does not record; None if not known.
        sequence_length: Tokens of a training sequence; the model gets at least as many positions.

    Raises:
        UnsupportedCheckpoint: No class in transformers represents the model.
        CheckpointError: A value is missing or impossible.
    """
    keys = Keys(config, where)
    nanotron_class = _marked_class(keys)
    check_keys(keys, nanotron_class)
    arch = nanotron_class.read(keys, use_mup)
    _check_heads(arch, where)
    return replace(arch, positions=max(arch.positions, sequence_length or 1))


def _marked_class(keys: Keys) -> NanotronClass:
    """Return Nanotron's class of the model; raise for another one."""
    marked = [str(key) for key, value in keys.config.items() if value is True]
    markers = [key for key in marked if key.startswith("is_") and key.endswith("_config")]
    classes = {item.marker: item for item in nanotron_classes()}
    if len(markers) == 1 and markers[0] in classes:
        return classes[markers[0]]
    named = ", ".join(markers)[:100] or "no `is_…_config` key"
    names = ", ".join(item.name for item in classes.values())
    raise UnsupportedCheckpoint(
        f"{keys.where}: {named} cannot be represented; Nanotron's {names} can"
    )


def _check_heads(arch: Architecture, where: str) -> None:
    if arch.hidden_size % arch.heads or arch.head_dim % 2:
        raise CheckpointError(
            f"{where}: `hidden_size` {arch.hidden_size} cannot be split into {arch.heads} heads of "
            "an even size; correct the configuration"
        )
    if arch.heads % arch.kv_heads:
        raise CheckpointError(
            f"{where}: `num_attention_heads` {arch.heads} is not a multiple of "
            f"`num_key_value_heads` {arch.kv_heads}; correct one of them"
        )
