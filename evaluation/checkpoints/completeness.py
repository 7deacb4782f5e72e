"""Whether a checkpoint is whole, from headers alone, before any GPU time is spent."""

import time
from collections.abc import Iterable
from pathlib import Path

from evaluation.checkpoints import huggingface
from evaluation.checkpoints.architecture import Architecture, read_architecture
from evaluation.checkpoints.blank import check_written
from evaluation.checkpoints.documents import read_text
from evaluation.checkpoints.format import Checkpoint, identity
from evaluation.checkpoints.headers import Header
from evaluation.checkpoints.mapping import Source, expected_parameters
from evaluation.checkpoints.shards import Parameter, read_parameters
from evaluation.errors import CheckpointError, IncompleteCheckpoint

_FRESH_SECONDS = 5.0
_SETTLE_SECONDS = 0.5


def check_complete(checkpoint: Checkpoint) -> None:
    """Every parameter is there, of the right shape, covered exactly, and nothing is being written.

    Raises IncompleteCheckpoint, CheckpointError or UnsupportedCheckpoint naming file and remedy.
    """
    if checkpoint.kind == "nanotron":
        complete_parameters(checkpoint)
    else:
        check_whole(checkpoint)


def check_whole(checkpoint: Checkpoint) -> None:
    """What can be told of any model, also of those that no class here represents.

    Every tensor that has a file is covered exactly, and nothing is being written. Raises
    IncompleteCheckpoint or CheckpointError naming file and remedy.
    """
    if checkpoint.kind == "nanotron":
        found = read_parameters(checkpoint.path).values()
        _check_still(checkpoint, [shard.header for one in found for shard in one.shards])
    else:
        _check_still(checkpoint, huggingface.read_headers(checkpoint.path))


def complete_parameters(checkpoint: Checkpoint) -> dict[str, tuple[Parameter, Source]]:
    """The parameters of a complete Nanotron checkpoint beside what its configuration makes them."""
    arch = read_architecture(checkpoint)
    expected = expected_parameters(arch)
    found = read_parameters(checkpoint.path)
    if arch.layers > len(found):  # before anything is made for each of them
        raise IncompleteCheckpoint(
            f"{checkpoint.path}: its configuration has {arch.layers} layers (`num_hidden_layers`), but "
            f"`model` holds only {len(found)} parameters; wait until it is written, or copy it again"
        )
    for name in found:
        if name not in expected:
            raise _unexpected(found[name], arch)
    for name, source in expected.items():
        if name not in found:
            folder = checkpoint.path.joinpath("model", *name.split(".")[:-1])
            raise IncompleteCheckpoint(
                f"{folder}: {name} is missing; wait until it is written, or copy it again"
            )
        if found[name].shape != source.shape:
            raise CheckpointError(
                f"{found[name].shards[0].path}: shape {found[name].shape}, but the configuration "
                f"makes it {source.shape}; config and weights are of different models"
            )
    headers = [shard.header for parameter in found.values() for shard in parameter.shards]
    _check_still(checkpoint, headers)
    return {name: (found[name], source) for name, source in expected.items()}


def check_unchanged(headers: Iterable[Header]) -> None:
    """Raises IncompleteCheckpoint if a file is not as it was when its header was read."""
    for header in headers:
        if _state(header.path) != (header.size, header.mtime_ns):
            raise _changed(header.path)


def check_tokenizer_fits(checkpoint: Checkpoint, vocab_size_needed: int) -> None:
    """Raises CheckpointError if a token id (the largest plus one is needed) has no embedding."""
    if vocab_size_needed > checkpoint.vocab_size:
        raise CheckpointError(
            f"{checkpoint.path}: its embedding has {checkpoint.vocab_size} rows, but the tokenizer "
            f"uses ids up to {vocab_size_needed - 1}; use the tokenizer the checkpoint was trained "
            "with"
        )


def _unexpected(parameter: Parameter, arch: Architecture) -> CheckpointError:
    path = parameter.shards[0].path
    if arch.tied and parameter.name == "model.lm_head.pp_block.weight":
        return CheckpointError(
            f"{path}: an output head, though the configuration ties it to the embedding; "
            "correct `tie_word_embeddings` or remove the file"
        )
    return CheckpointError(
        f"{path}: {parameter.name} is no parameter of this configuration's {arch.model_class}; "
        "correct the configuration, or remove the file if it is a leftover"
    )


def _check_still(checkpoint: Checkpoint, headers: list[Header]) -> None:
    """Files are as when the checkpoint was opened, hold numbers, and the latest do not change.

    Trainers write `latest.txt` last. Where it does not vouch for the step, a writer that is still at
    work shows within the pause; a checkpoint that was merely copied a moment ago does not change.
    """
    given = checkpoint.use_mup if checkpoint.training_config is None else None
    if identity(checkpoint.path, headers, given) != checkpoint.identity:
        raise _changed(checkpoint.path)
    check_written(checkpoint.path, headers, checkpoint.step)
    age = time.time() - max(header.mtime_ns for header in headers) / 1e9
    latest = checkpoint.path.parent / "latest.txt"
    vouched = latest.is_file() and read_text(latest).strip() == checkpoint.path.name
    if age < _FRESH_SECONDS and not vouched:
        time.sleep(_SETTLE_SECONDS)
        check_unchanged(headers)


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of change; None if there is no such file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _changed(path: Path) -> IncompleteCheckpoint:
    return IncompleteCheckpoint(
        f"{path}: is being written: it changed since it was opened; rerun when it is finished"
    )
