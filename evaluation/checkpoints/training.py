"""Read what a Nanotron checkpoint records about its training.

    config.yaml               model.init_method.use_mup, which scales attention
                              tokenizer.tokenizer_name_or_path (null if not recorded), and its revision
                              tokens.sequence_length, general.step
    checkpoint_metadata.json  metas.consumed_tokens_total, since format 1.5; before that
                              metas.data_stages[].{consumed_train_samples, sequence_length};
                              in the first formats only metas.consumed_train_samples

Nanotron always writes the first three keys of config.yaml. If one is missing, the file was truncated,
and its value must not be guessed: with a wrong `use_mup`, scores are wrong by 30 %.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import Keys, exists, parse_json, parse_yaml, read_text
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.fingerprints import file_checksum

log = logging.getLogger(__name__)

METADATA = "checkpoint_metadata.json"


@dataclass(frozen=True)
class Training:
    """A training configuration; `content` is the whole file."""

    content: dict[str, Any]
    use_mup: bool
    tokenizer_name: str | None
    sequence_length: int
    step: int | None


def read_training(folder: Path) -> Training | None:
    """Read `folder/config.yaml`; None if there is no such file. Raise as `parse_training`."""
    path = folder / "config.yaml"
    return parse_training(path, read_text(path)) if exists(path) else None


def parse_training(path: Path, text: str) -> Training:
    """Return the training configuration in the text of a config.yaml.

    Raises:
        IncompleteCheckpoint: The file was truncated.
        CheckpointError: It is not a training configuration.
    """
    content = parse_yaml(path, text)
    if not text.endswith("\n"):
        raise IncompleteCheckpoint(
            f"{path}: its last line does not end, so the file was truncated; copy it again, or end the "
            "line if nothing is missing"
        )
    method = _section(_section(content, path, "model"), path, "init_method", "model.")
    return Training(
        content=content,
        use_mup=Keys(method, str(path), "model.init_method.").flag("use_mup", False),
        tokenizer_name=_tokenizer_name(content, path),
        sequence_length=Keys(_section(content, path, "tokens"), str(path), "tokens.").count(
            "sequence_length"
        ),
        step=_step(content, path),
    )


def _section(table: dict[str, Any], path: Path, name: str, above: str = "") -> dict[str, Any]:
    section = table.get(name)
    if isinstance(section, dict):
        return section
    if section is None:
        raise _truncated(path, f"{above}{name}")
    raise CheckpointError(
        f"{path}: `{above}{name}` is {str(section)[:60]!r}, expected a table; copy the file again"
    )


def _truncated(path: Path, key: str) -> IncompleteCheckpoint:
    return IncompleteCheckpoint(
        f"{path}: `{key}` is missing, so the file was truncated, or no trainer wrote it; copy it again"
    )


def _tokenizer_name(content: dict[str, Any], path: Path) -> str | None:
    if content.get("tokenizer", {}) is None:  # it was trained on ids, without a tokenizer
        return None
    section = _section(content, path, "tokenizer")
    if "tokenizer_name_or_path" not in section:
        raise _truncated(path, "tokenizer.tokenizer_name_or_path")
    return Keys(section, str(path), "tokenizer.").text("tokenizer_name_or_path")


def recorded_revision(content: dict[str, Any] | None) -> str | None:
    """Return the revision on the hub of the tokenizer that a config.yaml names; None if it names none."""
    section = (content or {}).get("tokenizer")
    revision = section.get("tokenizer_revision") if isinstance(section, dict) else None
    return None if revision is None else str(revision)


def _step(content: dict[str, Any], path: Path) -> int | None:
    general = content.get("general")
    step = general.get("step") if isinstance(general, dict) else None
    if step is not None and (type(step) is not int or not 0 <= step < 2**63):
        raise CheckpointError(
            f"{path}: `general.step` is {str(step)[:60]!r}, expected a number; copy the file again"
        )
    return step


def consumed_tokens(checkpoint: Path) -> int | None:
    """Return the tokens that training has seen; None if not recorded.

    No score depends on it, so an unreadable file is only logged.
    """
    path = checkpoint / METADATA
    try:
        metas = parse_json(path).get("metas") if exists(path) else None
        tokens = _consumed(metas, checkpoint) if isinstance(metas, dict) else None
    except CheckpointError as error:
        log.warning("tokens seen are not known: %s", error)
        return None
    is_untrained = isinstance(metas, dict) and metas.get("last_train_step") == 0
    return tokens if tokens or is_untrained else None


def metadata_state(checkpoint: Path) -> str | None:
    """Return the checksum of a checkpoint's metadata; None if it cannot be read."""
    try:
        return file_checksum(checkpoint / METADATA)
    except OSError:
        return None


def _consumed(metas: dict[str, Any], folder: Path) -> int | None:
    total = _count(metas.get("consumed_tokens_total"))
    if total is not None:
        return total
    stages = metas.get("data_stages")
    of_stages = [_consumed_in_stage(stage) for stage in stages] if isinstance(stages, list) else []
    counts = [count for count in of_stages if count is not None]
    if of_stages and len(counts) == len(of_stages):
        return sum(counts)
    samples, training = _count(metas.get("consumed_train_samples")), read_training(folder)
    return samples * training.sequence_length if training and samples is not None else None


def _consumed_in_stage(stage: Any) -> int | None:
    if not isinstance(stage, dict):
        return None
    samples, length = (_count(stage.get(k)) for k in ("consumed_train_samples", "sequence_length"))
    return None if samples is None or length is None else samples * length


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None
