"""What a Hugging Face folder's config.json says that transformers does not check."""

from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import exists, read_table, short
from evaluation.errors import CheckpointError

_ROPE_KEYS = frozenset(
    "rope_theta rope_type factor partial_rotary_factor original_max_position_embeddings attention_factor "
    "beta_fast beta_slow low_freq_factor high_freq_factor".split()
)


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration's `text_config`; all of it if it has none."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def check_rope(config: dict[str, Any], path: Path) -> None:
    """Refuse a key of the position embedding that stands in two places with different values.

    `rope_parameters` may have a table for each kind of layer; then one of them must agree.
    """
    config = text_config(config)
    outside = dict(config)
    for name in ("rope_scaling", "rope_parameters"):
        table = config.get(name)
        if not isinstance(table, dict):
            continue
        kinds = [kind for kind in table.values() if isinstance(kind, dict)] or [table]
        for key in sorted(_ROPE_KEYS & outside.keys()):
            there = [kind[key] for kind in kinds if kind.get(key) is not None]
            if there and outside[key] is not None and outside[key] not in there:
                raise CheckpointError(
                    f"{path}: `{key}` is {short(outside[key])}, but in `{name}` it is {short(there[0])}; "
                    "take out the one that the model was not trained with"
                )
        outside |= table


def end_tokens(config: dict[str, Any], folder: Path) -> set[int]:
    """Return the ids that end an answer by a model's configuration and generation_config.json."""
    generation = folder / "generation_config.json"
    tables = [config, text_config(config)]
    tables += [read_table(generation)] if exists(generation) else []
    ends: list[Any] = []
    for value in (table.get("eos_token_id") for table in tables):
        ends += value if isinstance(value, list) else [value]
    return {end for end in ends if type(end) is int and end >= 0}
