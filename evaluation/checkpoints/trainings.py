"""Tell which training saved a step, so that steps of a restarted one are not taken for the same series.

A training is recorded as its folder of checkpoints and two fingerprints of its configuration: of what
stays when a training is continued (model, tokenizer, seed), and of what is often changed then (data,
optimizer, batch size). Neither has what every job may choose, such as its parallelism.
"""

from pathlib import Path
from typing import Any, NamedTuple

from evaluation.checkpoints.config_files import exists, parse_json, parse_yaml, read_text
from evaluation.errors import CheckpointError
from evaluation.files import fingerprint, unordered
from evaluation.settings.steps import step_named

_KEPT = ("model", "tokenizer")
_CHANGEABLE = ("data_stages", "data", "optimizer", "tokens")


class TrainingId(NamedTuple):
    """The training of a checkpoint: real path of its folder, and fingerprints of its configuration."""

    folder: str
    model: str
    course: str


def training_id(checkpoint: Path) -> TrainingId | None:
    """Return the training that saved a checkpoint; None without a configuration."""
    try:
        content = _configuration(checkpoint)
    except CheckpointError:  # reported where the checkpoint is opened
        return None
    general = content.get("general")
    seed = general.get("seed") if isinstance(general, dict) else None
    kept = {key: content.get(key) for key in _KEPT} if "model" in content else content
    course = {key: content.get(key) for key in _CHANGEABLE if key in content}
    folder = str(checkpoint.parent.resolve())
    return TrainingId(folder, _digest([kept, seed]), _digest(course))


def _digest(content: Any) -> str:
    return fingerprint(repr(unordered(content)))


def _configuration(folder: Path) -> dict[str, Any]:
    """Return config.yaml, or the model's configuration where there is none."""
    if exists(folder / "config.yaml"):
        return parse_yaml(folder / "config.yaml")
    name = "model_config.json" if exists(folder / "model_config.json") else "config.json"
    return parse_json(folder / name)


def recorded_training(value: object) -> TrainingId | None:
    """Return the training in a record; None where there is none, as in records of version 1."""
    is_training = isinstance(value, list | tuple) and len(value) == len(TrainingId._fields)
    return TrainingId(*map(str, value)) if is_training and isinstance(value, list | tuple) else None


def latest_step(folder: Path) -> int | None:
    """Return the step that a training saved last, by its `latest.txt`; None where it names none."""
    path = folder / "latest.txt"
    try:
        return step_named(read_text(path).strip()) if exists(path) else None
    except CheckpointError:
        return None


def leftovers(
    on_disk: dict[int, TrainingId | None], deleted: dict[int, TrainingId | None], latest: int | None
) -> set[int]:
    """Return the deleted steps that another training saved in the same folder.

    Steps that a continued training deletes come before those it still has. Another training's may
    come between or after them, or are of another model.

    Args:
        on_disk: Steps in the folder, with their training where it was looked at; not empty.
        deleted: Scored steps that are not there any more, with the training in their record.
        latest: The step that was saved last, if that is known.
    """
    now = on_disk[max(on_disk) if latest not in on_disk else latest]
    of_now = {step for step, one in deleted.items() if one == now}
    first = min([*on_disk, *of_now])
    steps = {step for step in deleted if latest is not None and step > latest}
    for training in set(deleted.values()) - {now, None}:
        its = {step for step, one in deleted.items() if one == training}
        is_continued = now is None or (
            training and training.model == now.model and max(its) < first
        )
        steps |= set() if is_continued else its
    return steps
