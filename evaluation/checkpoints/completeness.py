"""Check that a checkpoint is complete and that nothing writes to it, before any GPU time is spent.

Headers list the tensors that exist and the size that each file must have. What was being written when a
machine crashed may hold zeros; no sample of it is read.
"""

import time
from collections.abc import Iterable
from pathlib import Path

from evaluation.checkpoints.config_files import read_texts
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import Header, folder_files, weight_files
from evaluation.checkpoints.mapping import TensorSource
from evaluation.checkpoints.nanotron_classes.base import NanotronModel
from evaluation.checkpoints.shards import Parameter
from evaluation.checkpoints.trainings import latest_step
from evaluation.errors import CheckpointError, IncompleteCheckpoint

_FRESH_SECONDS = 5.0
"""Younger files are checked twice."""
SETTLE_SECONDS = 0.5


def check_complete(checkpoint: Checkpoint) -> None:
    """Check that every parameter exists in its shape, and that none is being written.

    Raises:
        IncompleteCheckpoint: A part is missing, or is still being written.
        CheckpointError: Files do not fit the configuration.
        UnsupportedCheckpoint: No class in transformers represents the model.
    """
    if checkpoint.kind == "nanotron":
        complete_parameters(checkpoint)
    else:
        check_whole(checkpoint)


def check_whole(checkpoint: Checkpoint) -> None:
    """Check a model of any class, also one that cannot be loaded here.

    The shards of each tensor must cover it exactly, and no writer may be at work on a file.

    Raises:
        IncompleteCheckpoint: A part is missing, or is still being written.
        CheckpointError: Files disagree with each other, or cannot be read.
    """
    if not _is_as_opened(checkpoint):
        raise _changed(checkpoint.path)
    _check_still(checkpoint)


def complete_parameters(checkpoint: Checkpoint) -> dict[str, tuple[Parameter, TensorSource]]:
    """Return the parameters of a complete Nanotron checkpoint.

    Returns:
        By Nanotron's name, each parameter with the place of its rows in transformers' model.

    Raises:
        IncompleteCheckpoint: A parameter is missing, or is still being written.
        CheckpointError: The configuration has no such parameter, or gives it another shape.
    """
    arch = checkpoint.architecture
    expected = arch.parameters()
    parameters = checkpoint.parameters
    if arch.layers > len(parameters):  # checked before anything is allocated for each layer
        raise IncompleteCheckpoint(
            f"{checkpoint.path}: its configuration has {arch.layers} layers (`num_hidden_layers`), but "
            f"`model` holds only {len(parameters)} parameters; wait until it is written, or copy it again"
        )
    for name in parameters:
        if name not in expected:
            raise _unexpected_parameter(parameters[name], arch)
    for name, source in expected.items():
        if name not in parameters:
            folder = checkpoint.path.joinpath("model", *name.split(".")[:-1])
            raise IncompleteCheckpoint(
                f"{folder}: {name} is missing; wait until it is written, or copy it again"
            )
        if parameters[name].shape != source.shape:
            raise CheckpointError(
                f"{parameters[name].shards[0].path}: shape {parameters[name].shape}, but the configuration "
                f"makes it {source.shape}; config and weights are of different models"
            )
    check_whole(checkpoint)
    return {name: (parameters[name], source) for name, source in expected.items()}


def _unexpected_parameter(parameter: Parameter, arch: NanotronModel) -> CheckpointError:
    path = parameter.shards[0].path
    if arch.tied_embeddings and parameter.name == "model.lm_head.pp_block.weight":
        return CheckpointError(
            f"{path}: an output head, though the configuration ties it to the embedding; "
            "correct `tie_word_embeddings` or remove the file"
        )
    return CheckpointError(
        f"{path}: {parameter.name} is not a parameter of this configuration's "
        f"{arch.transformers_model.class_name}; correct the configuration, or remove the file if it "
        "is a leftover"
    )


def _is_as_opened(checkpoint: Checkpoint) -> bool:
    """Return whether configurations are as they were when it was opened, and the weight files the same."""
    files_of = weight_files if checkpoint.kind == "nanotron" else folder_files
    return (
        read_texts(checkpoint.path) == checkpoint.texts
        and files_of(checkpoint.path) == checkpoint.weights
        and all(map(_is_as_read, checkpoint.headers))
    )


def _check_still(checkpoint: Checkpoint) -> None:
    """Check that nothing writes to the files of a checkpoint.

    Trainers write `latest.txt` last. If it does not name the step, a writer that is still at work
    changes a file during the pause; a checkpoint that was only copied a moment ago does not change.
    """
    age = time.time() - max(header.mtime_ns for header in checkpoint.headers) / 1e9
    is_latest = str(latest_step(checkpoint.path.parent)) == checkpoint.path.name
    if age < _FRESH_SECONDS and not is_latest:
        time.sleep(SETTLE_SECONDS)
        check_unchanged(checkpoint.headers)


def check_unchanged(headers: Iterable[Header]) -> None:
    """Check that files are still as they were when their headers were read.

    Raises:
        IncompleteCheckpoint: A file was deleted, or its size or mtime changed.
    """
    for header in headers:
        if not _is_as_read(header):
            raise _changed(header.path)


def _is_as_read(header: Header) -> bool:
    try:
        status = header.path.stat()
    except FileNotFoundError:
        return False
    return (status.st_size, status.st_mtime_ns) == (header.size, header.mtime_ns)


def _changed(path: Path) -> IncompleteCheckpoint:
    return IncompleteCheckpoint(
        f"{path}: is being written: it changed since it was opened; rerun when it is finished"
    )
