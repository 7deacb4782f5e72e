"""Check that a checkpoint is complete and that nothing writes to it, before any GPU time is spent.

Headers list the tensors that exist and the size that each file must have. What was being written when a
machine crashed may hold zeros; no sample of it is read.
"""

import time

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.mapping import TensorSource
from evaluation.checkpoints.shards import Parameter
from evaluation.checkpoints.state import checkpoint_state
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
    """Check a model of any class, also one that cannot be loaded here: no writer may be at work on a file.

    Trainers write `latest.txt` last. If it does not name the step, a writer that is still at work
    changes a file during the pause; a checkpoint that was only copied a moment ago does not change.
    """
    check_unchanged(checkpoint)
    age = time.time() - max(header.mtime_ns for header in checkpoint.headers) / 1e9
    is_latest = str(latest_step(checkpoint.path.parent)) == checkpoint.path.name
    if age < _FRESH_SECONDS and not is_latest:
        time.sleep(SETTLE_SECONDS)
        check_unchanged(checkpoint)


def check_unchanged(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint's files are as they were when it was opened; raise as `check_whole`."""
    if checkpoint_state(checkpoint.path) != checkpoint.state:
        raise IncompleteCheckpoint(
            f"{checkpoint.path}: is being written: it changed since it was opened; rerun when it is finished"
        )


def complete_parameters(checkpoint: Checkpoint) -> dict[str, tuple[Parameter, TensorSource]]:
    """Return the parameters of a complete Nanotron checkpoint.

    Returns:
        By Nanotron's name, each parameter with the place of its rows in transformers' model.

    Raises:
        IncompleteCheckpoint: A parameter is missing, or is still being written.
        CheckpointError: The configuration has no such parameter, or gives it another shape.
    """
    arch, parameters = checkpoint.architecture, checkpoint.parameters
    if arch.layers > len(parameters):  # checked before anything is allocated for each layer
        raise IncompleteCheckpoint(
            f"{checkpoint.path}: its configuration has {arch.layers} layers (`num_hidden_layers`), but "
            f"`model` holds only {len(parameters)} parameters; wait until it is written, or copy it again"
        )
    expected = arch.parameters()
    for name in sorted(parameters.keys() - expected.keys()):
        tied = "`tie_word_embeddings` or " if arch.tied_embeddings and "lm_head" in name else ""
        raise CheckpointError(
            f"{parameters[name].shards[0].path}: {name} is not a parameter of this configuration's "
            f"{arch.transformers_model.class_name}; correct {tied}the configuration, or remove the file "
            "if it is a leftover"
        )
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
