"""Open a merge like a checkpoint, after a check that its members have the same architecture.

A merge has the configuration of its main member: that of the largest weight, the last one of equals.
"""

from dataclasses import fields, replace
from pathlib import Path

from evaluation.checkpoints.config_files import short
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.locations import Location, Merge, absent_folder
from evaluation.checkpoints.model_keys import contradiction
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

_ORDER = ("bfloat16", "float16", "float32", "float64")


def open_subject(subject: Subject) -> Checkpoint:
    """Open a checkpoint that a stage scores; raise as `open_location`.

    The stage's `use_mup` is for the engine: a stage's own command reads what it needs.
    """
    stage = subject.plan.stage
    assumed = None if stage.command else stage.assume
    return open_location(subject.checkpoint, use_mup=assumed.use_mup if assumed else None)


def open_location(location: Location, *, use_mup: bool | None = None) -> Checkpoint:
    """Open a checkpoint, or a merge of several.

    Args:
        use_mup: Whether the model uses muP, for folders without the config.yaml that records it.

    Returns:
        The checkpoint; a merge has its main member's path and configurations, and all members.

    Raises:
        CheckpointError: A member does not exist, or differs in its model from the main one.
        UnsupportedCheckpoint: Nanotron did not save a member.
    """
    if isinstance(location, Path):
        return open_checkpoint(location, use_mup=use_mup, follow_latest=False)
    check_members(location)
    members = [
        (open_checkpoint(path, use_mup=use_mup, follow_latest=False), weight)
        for path, weight in location.members
    ]
    number = max(range(len(members)), key=lambda i: (members[i][1], i))
    main = members[number][0]
    for one, _ in members:
        _check_alike(location.name, main, one)
    dtypes = {one.dtype for one, _ in members}
    is_wide = len(dtypes) > 1 and "float64" not in dtypes
    return replace(
        main,
        step=None,
        dtype="float32" if is_wide else max(dtypes, key=_ORDER.index),
        members=tuple(members),
    )


def check_members(merge: Merge) -> None:
    """Raise CheckpointError if a member's folder holds no checkpoint; it need not be complete."""
    absent = absent_folder(merge)
    if absent is not None:
        raise CheckpointError(
            f"{absent}: no checkpoint there, but it is a member of the merge {merge.name}; wait until "
            "it is saved, restore it, or take it out of `merges`"
        )


def _check_alike(name: str, main: Checkpoint, checkpoint: Checkpoint) -> None:
    """Raise an error with the first key that differs if two members are not of the same model."""
    if checkpoint.kind != "nanotron":
        raise UnsupportedCheckpoint(
            f"{checkpoint.path}: a Hugging Face folder, which cannot be a member of the merge {name}; import "
            "it first with `python -m evaluation import-hf`"
        )
    key = contradiction(main.model_config, checkpoint.model_config)
    if key is not None:
        values = short(checkpoint.model_config.get(key)), short(main.model_config.get(key))
    else:
        ours, theirs = main.architecture, checkpoint.architecture
        names = [field.name for field in fields(ours) if field.name != "positions"]
        different = [key for key in names if getattr(ours, key) != getattr(theirs, key)]
        if not different:
            return
        key = different[0]
        values = short(getattr(theirs, key)), short(getattr(ours, key))
    raise CheckpointError(
        f"{checkpoint.path}: `{key}` is {values[0]}, but {values[1]} in {main.path}: different models cannot "
        f"be merged; take one of them out of the merge {name}"
    )
