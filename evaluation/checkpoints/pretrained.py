"""Hugging Face folders through transformers, whose many errors become sentences."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError

from evaluation.checkpoints.documents import is_there
from evaluation.checkpoints.format import TORCH_NAMES, Checkpoint
from evaluation.checkpoints.huggingface import check_sizes, read_headers
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.files import check_regular

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

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
            ignore_mismatched_sizes=True,  # which `_check_report` refuses by name
        )
    _check_report(checkpoint, report)
    _check_dtypes(checkpoint, model)
    _check_tied(checkpoint, model)
    _leave_out_unknown(checkpoint, model)
    return model


@contextlib.contextmanager
def _as_sentences(checkpoint: Checkpoint) -> Iterator[None]:
    check_sizes(checkpoint.model_config, read_headers(checkpoint.path), checkpoint.path)
    _check_plain(checkpoint.path)
    _check_whole_model(checkpoint)
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


def _check_tied(checkpoint: Checkpoint, model: "PreTrainedModel") -> None:
    """Raises CheckpointError where a file holds a head of its own that the configuration denies.

    Versions of transformers differ in which of the two they take.
    """
    head = model.get_output_embeddings()
    is_tied = getattr(model.config.get_text_config(), "tie_word_embeddings", False)
    if is_tied and head is not None and head.weight is not model.get_input_embeddings().weight:
        raise CheckpointError(
            f"{checkpoint.path}: its output head differs from the embedding, though config.json ties "
            "them; set `tie_word_embeddings` to false there, or remove the tensor"
        )


def _leave_out_unknown(checkpoint: Checkpoint, model: "PreTrainedModel") -> None:
    """Tells of keys that the class does not have, and takes away those that others would heed."""
    config, known = model.config, type(model.config)
    unknown = [
        key
        for key, value in checkpoint.model_config.items()
        if value and not key.startswith(("_", "rope_")) and not hasattr(known, key)
        and key not in (*known.attribute_map, "auto_map", "torch_dtype")
    ]  # fmt: skip
    if unknown:
        log.warning(
            "%s: %s does not have %s and leaves it out; correct `model_type` if the model has it",
            checkpoint.path / "config.json",
            known.__name__,
            ", ".join(unknown)[:300],
        )
    for key in {"sliding_window", "layer_types"} & {*unknown} & vars(config).keys():
        delattr(config, key)  # vLLM would apply them


def _check_whole_model(checkpoint: Checkpoint) -> None:
    """Raises UnsupportedCheckpoint for weights that are not all that the model computes with."""
    if checkpoint.model_config.get("quantization_config"):
        raise UnsupportedCheckpoint(
            f"{checkpoint.path / 'config.json'}: a quantized model (`quantization_config`), which is not "
            "supported; name the original, or score it by a `command` of your own"
        )
    adapter = checkpoint.path / "adapter_config.json"
    if is_there(adapter):
        raise UnsupportedCheckpoint(
            f"{adapter}: an adapter, which would be left out; merge it into the weights (`merge_and_unload` "
            "of PEFT) and name that folder, or remove the file"
        )


def _check_dtypes(checkpoint: Checkpoint, model: "PreTrainedModel") -> None:
    """Raises UnsupportedCheckpoint for parameters stored as anything but plain floats."""
    parameters = {name for name, _ in model.named_parameters()}
    for header in read_headers(checkpoint.path):
        for name, entry in header.tensors.items():
            if name in parameters and entry.dtype not in TORCH_NAMES:
                raise UnsupportedCheckpoint(
                    f"{header.path}: {name} is {entry.dtype}; only {', '.join(TORCH_NAMES)} can be read"
                )


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
