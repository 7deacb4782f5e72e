"""Check that a checkpoint is complete and that nothing writes to it, before any GPU time is spent.

Headers list the tensors that exist and the size that each file must have. What was being written when a
machine crashed may hold zeros; no sample of it is read.
"""

import time

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.nanotron_classes.base import TensorSource
from evaluation.checkpoints.shards import Parameter
from evaluation.checkpoints.state import checkpoint_state
from evaluation.errors import CheckpointError, IncompleteCheckpoint

_FRESH_SECONDS = 5.0
"""Younger files are checked twice."""
SETTLE_SECONDS = 0.5


def check_complete(checkpoint: Checkpoint) -> None:
    """Check that every parameter exists in its shape, and that none is being written.

    Raises IncompleteCheckpoint, or CheckpointError if files do not fit the configuration.
    """
    if checkpoint.kind == "nanotron":
        complete_parameters(checkpoint)
    else:
        check_whole(checkpoint)


def check_whole(checkpoint: Checkpoint) -> None:
    """Check a model of any class, also one that cannot be loaded here: no writer may be at work on a file.

    A writer changes a file during the pause; what was only copied a moment ago does not change.
    """
    check_unchanged(checkpoint)
    if time.time() - max(header.mtime_ns for header in checkpoint.headers) / 1e9 < _FRESH_SECONDS:
        time.sleep(SETTLE_SECONDS)
        check_unchanged(checkpoint)


def check_unchanged(checkpoint: Checkpoint) -> None:
    """Check that a checkpoint's files are as they were when it was opened; raise as `check_whole`."""
    if checkpoint_state(checkpoint.path) != checkpoint.state:
        raise IncompleteCheckpoint(
            f"{checkpoint.path}: is being written: it changed since it was opened; rerun when it is finished"
        )


def complete_parameters(checkpoint: Checkpoint) -> dict[str, tuple[Parameter, TensorSource]]:
    """Return a complete Nanotron checkpoint's parameters by name, with the places of their rows.

    Raises as `check_complete`.
    """
    expected, parameters = checkpoint.architecture.parameters(), checkpoint.parameters
    if absent := sorted(expected.keys() - parameters.keys()):
        raise IncompleteCheckpoint(
            f"{checkpoint.path / 'model'}: {absent[0]} is missing; wait until it is written, or copy it again"
        )
    for name, parameter in parameters.items():
        if name not in expected or parameter.shape != expected[name].shape:
            what = f"of shape {expected[name].shape}" if name in expected else "not a parameter"
            raise CheckpointError(
                f"{parameter.shards[0].path}: {name} of shape {parameter.shape} is {what} by the "
                "configuration (`tie_word_embeddings` and others); both are of different models, or the "
                "file is a leftover to remove"
            )
    check_whole(checkpoint)
    return {name: (parameters[name], source) for name, source in expected.items()}
