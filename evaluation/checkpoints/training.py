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

from pydantic import BaseModel, Field, StrictBool

from evaluation.checkpoints.config_files import (
    exists,
    parse_json,
    parse_yaml,
    read_text,
    validated,
)
from evaluation.checkpoints.nanotron_classes.base import Count
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import file_checksum
from evaluation.settings.model import Step, Text

log = logging.getLogger(__name__)

METADATA = "checkpoint_metadata.json"


class _InitMethod(BaseModel):
    use_mup: StrictBool = False


class _Model(BaseModel):
    init_method: _InitMethod
    described: Any = Field(None, alias="model_config")


class _Tokenizer(BaseModel):
    tokenizer_name_or_path: Text | None


class _Tokens(BaseModel):
    sequence_length: Count


class _General(BaseModel):
    step: Step | None = None


class _Content(BaseModel):
    """The keys of a config.yaml that are read."""

    model: _Model
    tokenizer: _Tokenizer | None
    tokens: _Tokens
    general: _General | None = None


@dataclass(frozen=True)
class Training:
    """A training configuration; `content` is the whole file."""

    content: dict[str, Any]
    use_mup: bool
    tokenizer_name: str | None
    """None for a training on ids, without a tokenizer."""
    sequence_length: int
    step: int | None
    described: dict[str, Any] | None
    """Its table of the model's configuration."""


def read_training(folder: Path) -> Training | None:
    """Read `folder/config.yaml`; None if there is no such file. Raise as `parse_training`."""
    path = folder / "config.yaml"
    return parse_training(path, read_text(path)) if exists(path) else None


def parse_training(path: Path, text: str) -> Training:
    """Return the training configuration in the text of a config.yaml."""
    content = parse_yaml(path, text)
    if not text.endswith("\n"):
        raise IncompleteCheckpoint(
            f"{path}: its last line does not end, so the file was truncated; copy it again, or end the "
            "line if nothing is missing"
        )
    read = validated(_Content, content, str(path))
    described = read.model.described
    return Training(
        content=content,
        use_mup=read.model.init_method.use_mup,
        tokenizer_name=read.tokenizer.tokenizer_name_or_path if read.tokenizer else None,
        sequence_length=read.tokens.sequence_length,
        step=read.general.step if read.general else None,
        described=described if isinstance(described, dict) else None,
    )


def recorded_revision(content: dict[str, Any] | None) -> str | None:
    """Return the revision on the hub of the tokenizer that a config.yaml names; None if it names none."""
    section = (content or {}).get("tokenizer")
    revision = section.get("tokenizer_revision") if isinstance(section, dict) else None
    return None if revision is None else str(revision)


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
