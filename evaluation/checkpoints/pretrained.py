"""Hugging Face folders through transformers, whose many errors become sentences."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.huggingface import check_sizes, read_headers
from evaluation.errors import CheckpointError
from evaluation.files import check_regular

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_REFUSALS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError,
    RuntimeError, SafetensorError, StrictDataclassError, TypeError, ValueError,
)  # fmt: skip
"""What transformers raises for a configuration that it cannot use."""


def load_config(checkpoint: Checkpoint) -> Any:
    """The folder's configuration with all defaults; raises CheckpointError."""
    with _as_sentences(checkpoint):
        return transformers.AutoConfig.from_pretrained(
            checkpoint.path, local_files_only=True, trust_remote_code=False
        )


def load_pretrained(checkpoint: Checkpoint, dtype: torch.dtype) -> "PreTrainedModel":
    """The folder's model on the CPU; raises CheckpointError unless weights and class match."""
    with _as_sentences(checkpoint):
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            checkpoint.path,
            dtype=dtype,
            attn_implementation="sdpa",
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    _check_report(checkpoint, report)
    return model


@contextlib.contextmanager
def _as_sentences(checkpoint: Checkpoint) -> Iterator[None]:
    check_sizes(checkpoint.model_config, read_headers(checkpoint.path), checkpoint.path)
    _check_plain(checkpoint.path)
    try:
        yield
    except _REFUSALS as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        raise CheckpointError(
            f"{checkpoint.path}: transformers cannot load it; check its config.json ({reason})"
        ) from None


def _check_plain(folder: Path) -> None:
    """Raises CheckpointError for a pipe or socket, which transformers would wait for."""
    for path in sorted(folder.iterdir()):
        try:
            if not path.is_dir():
                check_regular(path)
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read ({error.strerror}); remove it") from None


def _check_report(checkpoint: Checkpoint, report: dict[str, Any]) -> None:
    """Raises CheckpointError if the files and the model's class do not match tensor by tensor."""
    unexpected = {name for name in report["unexpected_keys"] if "rotary_emb" not in name}
    for problem, names in (
        ("has no", report["missing_keys"]),
        ("has another shape for", report["mismatched_keys"]),
        ("has what its class does not know:", unexpected),
    ):
        if names:
            raise CheckpointError(
                f"{checkpoint.path}: {problem} {sorted(map(str, names))[0]}; its config.json and "
                "its weights are of different models"
            )
