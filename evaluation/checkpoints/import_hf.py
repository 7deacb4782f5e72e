"""A Hugging Face model as a Nanotron checkpoint, as Nanotron's trainer would have saved it."""

import contextlib
import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from evaluation.checkpoints.architecture import Architecture, parse_architecture
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.config_files import read_text
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.mapping import expected_parameters
from evaluation.checkpoints.pretrained import load_config, load_pretrained
from evaluation.checkpoints.save import (
    nanotron_model_config,
    new_folder,
    write_configs,
    write_parameters,
)
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.files import write_text
from evaluation.settings.steps import step_named

log = logging.getLogger(__name__)


def import_hf(
    source: Path,
    target: Path,
    *,
    tp: int = 1,
    step: int = 0,
    sequence_length: int | None = None,
    tokenizer_name: str | None = None,
) -> Path:
    """Write `target/<step>` and `target/latest.txt` from a Llama or Qwen2 folder.

    Args:
        source: The Hugging Face folder.
        target: Folder of Nanotron steps; made if it is not there.
        tp: Tensor-parallel size. The vocabulary is padded to a multiple, as the trainer does.
        step: Step to save it as, from 0 on.
        sequence_length: Training length in tokens to record; None: the model's longest.
        tokenizer_name: Tokenizer to record; None: `source`.

    Returns:
        Folder of the new step.

    Raises:
        UnsupportedCheckpoint: Nanotron has no such model.
        CheckpointError: `source` is no such folder, `tp` does not fit it, or the step is there already.
    """
    checkpoint = open_checkpoint(source)
    if checkpoint.kind != "huggingface":
        raise CheckpointError(
            f"{source}: not a Hugging Face folder: it has no config.json; name one that has"
        )
    config = _read_config(checkpoint)
    check_complete(checkpoint)
    model_config = nanotron_model_config(config, checkpoint.path)
    arch = parse_architecture(model_config, False, None, str(checkpoint.path / "config.json"))
    _check_tp(arch, tp, source)
    if sequence_length is not None and sequence_length > arch.positions:
        raise CheckpointError(
            f"{source}: --sequence-length {sequence_length} is more than the model's {arch.positions} "
            "positions; give no more than these"
        )
    padded = _padded_vocabulary(arch, tp, source)
    model_config["vocab_size"] = padded.vocab_size
    with _new_step(target, step) as folder:
        _write_weights(checkpoint, folder, arch, padded, tp)
        write_configs(
            folder,
            model_config,
            dtype=checkpoint.dtype,
            tp=tp,
            step=step,
            sequence_length=sequence_length or arch.positions,
            tokenizer_name=tokenizer_name or str(source),
        )
    return target / str(step)


def _read_config(checkpoint: Checkpoint) -> Any:
    kind = checkpoint.model_config.get("model_type")
    if kind not in ("llama", "qwen2"):
        raise UnsupportedCheckpoint(
            f"{checkpoint.path / 'config.json'}: model_type {kind!r} has no counterpart in Nanotron; "
            "llama and qwen2 have"
        )
    return load_config(checkpoint)


def _check_tp(arch: Architecture, tp: int, source: Path) -> None:
    """Raise CheckpointError unless heads, key-value heads and intermediate size are divided evenly."""
    sizes = {
        "num_attention_heads": arch.heads,
        "num_key_value_heads": arch.kv_heads,
        "intermediate_size": arch.intermediate_size,
    }
    undivided = [f"{key} {size}" for key, size in sizes.items() if tp < 1 or size % tp]
    if undivided:
        common = math.gcd(*sizes.values())
        possible = [str(n) for n in range(1, common + 1) if common % n == 0]
        raise CheckpointError(
            f"{source}: tp {tp} does not divide {', '.join(undivided)}; "
            f"tp can be {', '.join(possible)}"
        )


def _padded_vocabulary(arch: Architecture, tp: int, source: Path) -> Architecture:
    """Return the model with a vocabulary that `tp` divides."""
    padded = replace(arch, vocab_size=math.ceil(arch.vocab_size / tp) * tp)
    if padded.vocab_size != arch.vocab_size:
        log.warning(
            "%s: the vocabulary is padded from %d to %d rows of zeros; the added ids get some "
            "probability", source, arch.vocab_size, padded.vocab_size,
        )  # fmt: skip
    return padded


@contextlib.contextmanager
def _new_step(target: Path, step: int) -> Iterator[Path]:
    """Give a temporary folder that becomes `target/<step>`, named by `latest.txt`, if all goes well."""
    final = target / str(step)
    if step < 0:
        raise CheckpointError(f"{final}: a step cannot be negative; give one from 0 on")
    with new_folder(final) as temporary:
        yield temporary
    _update_latest(target, step)


def _update_latest(target: Path, step: int) -> None:
    """Name the highest step, in whatever order steps are imported."""
    latest = target / "latest.txt"
    known = step_named(read_text(latest).strip()) if latest.is_file() else None
    if known is None or known < step:
        write_text(latest, str(step))


def _write_weights(
    checkpoint: Checkpoint, folder: Path, arch: Architecture, padded: Architecture, tp: int
) -> None:
    """Write Nanotron's tensors, put together from those of the model as transformers loads it."""
    theirs = load_pretrained(checkpoint, getattr(torch, checkpoint.dtype)).state_dict()
    sources, padded_sources = expected_parameters(arch), expected_parameters(padded)

    def tensor(name: str) -> torch.Tensor:
        whole = torch.cat([theirs[target.name] for target in sources[name].targets])
        rows = padded_sources[name].shape[0] - len(whole)
        return torch.cat((whole, whole.new_zeros(rows, *whole.shape[1:])))

    write_parameters(folder, padded_sources, tensor, tp=tp)
