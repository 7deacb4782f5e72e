"""Read what a Nanotron checkpoint records about its training: config.yaml, checkpoint_metadata.json.

Nanotron always writes the keys of config.yaml that are required here. If one is missing, the file was
truncated, and its value must not be guessed: with a wrong `use_mup`, scores are wrong by 30 %.
"""

import logging
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictBool

from evaluation.checkpoints.config_files import exists, read_table, read_text, validated
from evaluation.checkpoints.nanotron_classes.base import Count
from evaluation.errors import CheckpointError, IncompleteCheckpoint
from evaluation.files import file_checksum
from evaluation.settings.model import Step, Text

log = logging.getLogger(__name__)

METADATA = "checkpoint_metadata.json"

_Seen = Annotated[int, Field(strict=True, ge=0, lt=2**53)] | None


class _InitMethod(BaseModel):
    use_mup: StrictBool = False


class _Model(BaseModel):
    init_method: _InitMethod
    described: Any = Field(None, alias="model_config")


class _Tokenizer(BaseModel):
    tokenizer_name_or_path: Text | None
    tokenizer_revision: str | None = None


class _Tokens(BaseModel):
    sequence_length: Count


class _General(BaseModel):
    step: Step | None = None


class Training(BaseModel):
    """The keys of a config.yaml that are read; `tokenizer` is null after training on ids alone."""

    model: _Model
    tokenizer: _Tokenizer | None
    tokens: _Tokens
    general: _General = _General()

    @property
    def described(self) -> dict[str, Any] | None:
        """Its table of the model's configuration."""
        return self.model.described if isinstance(self.model.described, dict) else None


def read_training(folder: Path) -> Training | None:
    """Read `folder/config.yaml`; None if there is no such file. Raise as `parse_training`."""
    path = folder / "config.yaml"
    return parse_training(path, read_text(path)) if exists(path) else None


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
    consumed_train_samples: _Seen = None
    sequence_length: _Seen = None


class _Metas(BaseModel):
    """Counts of a training: the total since format 1.5, before that those of each data stage, or samples."""

    last_train_step: Any = None
    consumed_tokens_total: _Seen = None
    data_stages: list[_DataStage] | None = None
    consumed_train_samples: _Seen = None


class _Metadata(BaseModel):
    metas: _Metas


def consumed_tokens(checkpoint: Path) -> int | None:
    """Return the tokens that training has seen; None if not recorded.

    No score depends on it, so an unreadable file is only logged.
    """
    path = checkpoint / METADATA
    try:
        if not exists(path):
            return None
        metas = validated(_Metadata, read_table(path), str(path)).metas
        tokens = _tokens_of(metas, checkpoint)
    except CheckpointError as error:
        log.warning("tokens seen are not known: %s", error)
        return None
    return tokens if tokens or metas.last_train_step == 0 else None  # an imported model counts none


def _tokens_of(metas: _Metas, folder: Path) -> int | None:
    if metas.consumed_tokens_total is not None:
        return metas.consumed_tokens_total
    stages = metas.data_stages or []
    if not stages and (training := read_training(folder)):
        own = {"sequence_length": training.tokens.sequence_length}
        stages = [_DataStage(consumed_train_samples=metas.consumed_train_samples, **own)]
    counts = [
        one.consumed_train_samples * one.sequence_length
        for one in stages
        if one.consumed_train_samples is not None and one.sequence_length is not None
    ]
    return sum(counts) if stages and len(counts) == len(stages) else None


def metadata_state(checkpoint: Path) -> str | None:
    """Return the checksum of a checkpoint's metadata; None if it cannot be read."""
    try:
        return file_checksum(checkpoint / METADATA)
    except OSError:
        return None
