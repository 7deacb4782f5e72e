"""Read what a Nanotron checkpoint records about its training: config.yaml, checkpoint_metadata.json.

Nanotron always writes the keys of config.yaml that are required here. If one is missing, the file was
truncated, and its value must not be guessed: with a wrong `use_mup`, scores are wrong by 30 %.
"""

import logging
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, Field, StrictBool

from evaluation.checkpoints.config_files import exists, read_table, read_text, validated
from evaluation.checkpoints.nanotron_classes.base import Count
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import file_checksum
from evaluation.settings.model import Text

log = logging.getLogger(__name__)

METADATA = "checkpoint_metadata.json"

_Seen = Annotated[int, Field(strict=True, ge=0, lt=2**53)] | None


def _at(*path: str, **given: Any) -> Any:
    return Field(validation_alias=AliasPath(*path), **given)


class Training(BaseModel):
    """The keys of a config.yaml that are read; `tokenizer` is null after training on ids alone."""

    init_method: dict[str, Any] = _at("model", "init_method")
    use_mup: StrictBool = _at("model", "init_method", "use_mup", default=False)
    described: dict[str, Any] | None = _at("model", "model_config", default=None)
    tokenizer: dict[str, Any] | None
    tokenizer_name: Text | None = _at("tokenizer", "tokenizer_name_or_path", default=None)
    tokenizer_revision: Text | None = _at("tokenizer", "tokenizer_revision", default=None)
    sequence_length: Count = _at("tokens", "sequence_length")


def parse_training(path: Path, text: str) -> Training:
    """Return the training configuration in the text of a config.yaml."""
    content = read_table(path, text)
    if not text.endswith("\n"):
        raise IncompleteCheckpoint(
            f"{path}: its last line does not end, so the file was truncated; copy it again, or end the "
            "line if nothing is missing"
        )
    return validated(Training, content, str(path))


class _DataStage(BaseModel):
    consumed_train_samples: int = Field(strict=True, ge=0, lt=2**53)
    sequence_length: int = Field(strict=True, ge=0, lt=2**53)


class _Metadata(BaseModel):
    """Counts of a training: the total since format 1.5, before that those of each data stage, or samples."""

    last_step: Any = _at("metas", "last_train_step", default=None)
    total: _Seen = _at("metas", "consumed_tokens_total", default=None)
    stages: list[_DataStage] | None = _at("metas", "data_stages", default=None)
    samples: _Seen = _at("metas", "consumed_train_samples", default=None)


def consumed_tokens(checkpoint: Path) -> int | None:
    """Return the tokens that training has seen; None if not recorded.

    No score depends on it, so an unreadable file is only logged.
    """
    path, config = checkpoint / METADATA, checkpoint / "config.yaml"
    try:
        read = validated(_Metadata, read_table(path) if exists(path) else {}, str(path))
        counts = [s.consumed_train_samples * s.sequence_length for s in read.stages or ()]
        if not counts and read.samples is not None and exists(config):
            length = parse_training(config, read_text(config)).sequence_length
            counts = [read.samples * length]
    except CheckpointError as error:
        log.warning("tokens seen are not known: %s", error)
        return None
    tokens = sum(counts) if read.total is None else read.total
    return tokens if tokens or read.last_step == 0 else None  # an imported model counts none


def metadata_state(checkpoint: Path) -> str | None:
    """Return the checksum of a checkpoint's metadata; None if it cannot be read."""
    try:
        return file_checksum(checkpoint / METADATA)
    except OSError:
        return None
