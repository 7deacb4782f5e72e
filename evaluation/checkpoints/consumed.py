"""How many tokens a model had seen when it was saved, as `checkpoint_metadata.json` counts them.

metas.consumed_tokens_total                                      Nanotron's format 1.5
metas.data_stages[].{consumed_train_samples, sequence_length}    since there are stages of data
metas.consumed_train_samples                                     before that: of one length
"""

import logging
from pathlib import Path
from typing import Any

from evaluation.checkpoints.documents import is_there, parse_json
from evaluation.checkpoints.training import read_training
from evaluation.errors import CheckpointError
from evaluation.files import file_checksum

log = logging.getLogger(__name__)

METADATA = "checkpoint_metadata.json"


def consumed_tokens(folder: Path) -> int | None:
    """Tokens seen in training; None where the checkpoint does not say, as of an imported model.

    No score depends on it, so what cannot be read is logged and stops nothing.
    """
    path = folder / METADATA
    try:
        metas = parse_json(path).get("metas") if is_there(path) else None
        found = _total(metas, folder) if isinstance(metas, dict) else None
    except CheckpointError as error:
        log.warning("tokens seen are not known: %s", error)
        return None
    is_untrained = isinstance(metas, dict) and metas.get("last_train_step") == 0
    return found if found or is_untrained else None


def metadata_state(folder: Path) -> str | None:
    """Checksum of what the count is taken from; None if it is not there, or not to be read."""
    try:
        return file_checksum(folder / METADATA)
    except OSError:
        return None


def _total(metas: dict[str, Any], folder: Path) -> int | None:
    total = _count(metas.get("consumed_tokens_total"))
    if total is not None:
        return total
    stages = metas.get("data_stages")
    known = [_of_stage(stage) for stage in stages] if isinstance(stages, list) else []
    counts = [count for count in known if count is not None]
    if known and len(counts) == len(known):
        return sum(counts)
    samples, training = _count(metas.get("consumed_train_samples")), read_training(folder)
    return samples * training.sequence_length if training and samples is not None else None


def _of_stage(stage: Any) -> int | None:
    if not isinstance(stage, dict):
        return None
    samples, length = (_count(stage.get(k)) for k in ("consumed_train_samples", "sequence_length"))
    return None if samples is None or length is None else samples * length


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None
