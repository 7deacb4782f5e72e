"""Whether a checkpoint is whole, from headers alone, before any GPU time is spent."""

import time
from pathlib import Path

from evaluation.checkpoints import huggingface
from evaluation.checkpoints.architecture import Architecture, read_architecture
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.mapping import Source, expected_parameters
from evaluation.checkpoints.shards import Parameter, read_parameters, weight_files
from evaluation.errors import CheckpointError, IncompleteCheckpoint

_FRESH_SECONDS = 5.0
_SETTLE_SECONDS = 0.5


def check_complete(checkpoint: Checkpoint) -> None:
    """Every parameter is there, of the right shape, covered exactly, and nothing is being written.

    Raises IncompleteCheckpoint, CheckpointError or UnsupportedCheckpoint naming file and remedy.
    """
    if checkpoint.kind == "huggingface":
        huggingface.read_headers(checkpoint.path)
    else:
        checked_parameters(checkpoint, read_architecture(checkpoint))
    check_unchanged(checkpoint)
    _check_settled(checkpoint.path)


def checked_parameters(
    checkpoint: Checkpoint, arch: Architecture
) -> dict[str, tuple[Parameter, Source]]:
    """The parameters on disk beside what the configuration says they are."""
    expected = expected_parameters(arch)
    found = read_parameters(checkpoint.path)
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
    return {name: (found[name], source) for name, source in expected.items()}


def check_unchanged(checkpoint: Checkpoint) -> None:
    """Raises IncompleteCheckpoint if any file differs from when the checkpoint was opened."""
    if open_checkpoint(checkpoint.path).identity != checkpoint.identity:
        raise IncompleteCheckpoint(
            f"{checkpoint.path}: changed since it was opened; wait until it is written, then rerun"
        )


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


def _check_settled(folder: Path) -> None:
    """Looks twice at files that changed within seconds, unless `latest.txt` vouches for the step.

    Trainers write `latest.txt` last. Where it is older or absent, a writer that is still at work
    shows within the pause; a checkpoint that was merely copied a moment ago does not change.
    """
    before = _states(folder)
    if time.time() - max(mtime for _, _, mtime in before) / 1e9 > _FRESH_SECONDS:
        return
    latest = folder.parent / "latest.txt"
    if latest.is_file() and latest.read_bytes().strip() == folder.name.encode():
        return
    time.sleep(_SETTLE_SECONDS)
    if _states(folder) != before:
        raise IncompleteCheckpoint(f"{folder}: is being written; wait until it is finished")


def _states(folder: Path) -> list[tuple[Path, int, int]]:
    model = (folder / "model").is_dir()
    files = weight_files(folder) if model else sorted(folder.glob("*.safetensors"))
    found = []
    for path in files:
        try:
            status = path.stat()
        except FileNotFoundError:
            raise IncompleteCheckpoint(
                f"{path}: vanished while it was looked at; rerun once nothing writes the checkpoint"
            ) from None
        found.append((path, status.st_size, status.st_mtime_ns))
    return found
