"""Load Hugging Face folders by transformers, and turn its many kinds of errors into one sentence each."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from transformers.models.auto.auto_factory import _get_model_class

from evaluation.checkpoints.config_files import exists, short
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.headers import TORCH_NAMES
from evaluation.errors import (
    CheckpointError,
    ScoringError,
    UnsupportedCheckpoint,
    first_few,
    one_line,
    reason_of,
)
from evaluation.processes import is_out_of_memory

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_REFUSALS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError,
    RuntimeError, SafetensorError, StrictDataclassError, TypeError, ValueError,
)  # fmt: skip
"""What transformers raises for a configuration that it cannot use."""


def load_pretrained(checkpoint: Checkpoint, dtype: torch.dtype) -> "PreTrainedModel":
    """Return a Hugging Face folder's model on the CPU, with exactly the tensors of its headers."""
    _check_whole_model(checkpoint)
    transformers.utils.logging.set_verbosity_error()  # `_check_report` names what is wrong
    transformers.utils.logging.disable_progress_bar()
    local: dict[str, Any] = {"dtype": dtype, "local_files_only": True, "trust_remote_code": False}
    with contextlib.ExitStack() as stack:
        stack.enter_context(_errors_as_sentences(checkpoint))
        config = transformers.AutoConfig.from_pretrained(checkpoint.path, **local)
        state: dict[str, Any] = {}
        for header in checkpoint.headers:  # read, not mapped, so that later changes do not matter
            file = stack.enter_context(safe_open(header.path, framework="pt", backend="pread"))
            state |= {name: file.get_slice(name) for name in header.tensors}
        model_class, config = _class_of(config)
        model, report = model_class.from_pretrained(
            None,
            config=config,
            state_dict=state,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # `_check_report` refuses them and names the tensors
            **local,
        )
    _check_values(checkpoint, model)
    _check_report(checkpoint, model, report)
    return model


def _class_of(config: Any) -> tuple[Any, Any]:
    """Return the class that `AutoModelForCausalLM` takes, and its configuration, maybe of the text alone."""
    mapping = transformers.AutoModelForCausalLM._model_mapping
    if type(config) not in mapping:
        raise ValueError(f"{type(config).__name__} is of no causal language model")
    model_class = _get_model_class(config, mapping)
    is_part = model_class.config_class == config.sub_configs.get("text_config", None)
    return model_class, config.get_text_config() if is_part else config


@contextlib.contextmanager
def _errors_as_sentences(checkpoint: Checkpoint) -> Iterator[None]:
    try:
        yield
    except _REFUSALS as error:
        if is_out_of_memory(error):
            raise exceeds_memory(checkpoint, error) from None
        raise CheckpointError(
            f"{checkpoint.path}: transformers cannot load it; check its config.json ({one_line(error)})"
        ) from None


def exceeds_memory(checkpoint: Checkpoint, error: Exception) -> ScoringError:
    """Return the error of a model that this machine cannot hold, which is not the checkpoint's fault."""
    return ScoringError(
        f"{checkpoint.path}: the model does not fit into the memory that is left for this process "
        f"({reason_of(error)}); give the job more, or take a machine with more"
    )


def _check_values(checkpoint: Checkpoint, model: "PreTrainedModel") -> None:
    """Raise CheckpointError for two names of a key that differ, a head that is not tied, bad frequencies.

    Versions of transformers differ in which of two values or matrices they use; no file holds frequencies.
    """
    path, given = checkpoint.path / "config.json", checkpoint.model_config
    for alias, name in model.config.attribute_map.items():
        if {alias, name} <= given.keys() and given[alias] != given[name]:
            raise CheckpointError(
                f"{path}: `{alias}` is {short(given[alias])}, but `{name}`, the same key, is "
                f"{short(given[name])}; take out the wrong one"
            )
    head = model.get_output_embeddings()
    is_tied = getattr(model.config.get_text_config(), "tie_word_embeddings", False)
    if is_tied and head is not None and head.weight is not model.get_input_embeddings().weight:
        raise CheckpointError(
            f"{checkpoint.path}: its output head differs from the embedding, though config.json ties "
            "them; set `tie_word_embeddings` to false there, or remove the tensor (`lm_head.weight`)"
        )
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point() and not buffer.isfinite().all():
            raise CheckpointError(
                f"{path}: it makes {name} infinite or NaN; correct its keys of the position embedding"
            )


def _check_whole_model(checkpoint: Checkpoint) -> None:
    """Raise UnsupportedCheckpoint for a quantized model, an adapter, and weights of another file."""
    adapter, file = checkpoint.path / "adapter_config.json", checkpoint.weights[0].name
    other = checkpoint.model_config.get("transformers_weights")
    what = None
    if checkpoint.model_config.get("quantization_config"):
        what = "a quantized model (`quantization_config`); name the original"
    elif exists(adapter):
        what = f"{adapter.name} is an adapter's, which would not be applied; name the merged model"
    elif other is not None and [str(other)] != [path.name for path in checkpoint.weights]:
        what = (
            f"`transformers_weights` names {str(other)[:60]!r}, but {file} is there; remove either"
        )
    if what:
        raise UnsupportedCheckpoint(f"{checkpoint.path / 'config.json'}: {what}")


def _check_report(checkpoint: Checkpoint, model: "PreTrainedModel", report: dict[str, Any]) -> None:
    """Raise CheckpointError if the files and the model's class do not match tensor by tensor."""
    stored = {n: e.dtype for header in checkpoint.headers for n, e in header.tensors.items()}
    other = [n for n, _ in model.named_parameters() if stored.get(n, "F32") not in TORCH_NAMES]
    unexpected = [name for name in report["unexpected_keys"] if "rotary_emb" not in name]
    problems = {
        f"has another dtype than {', '.join(TORCH_NAMES)} for": other,
        "has no": report["missing_keys"],
        "has another shape for": report["mismatched_keys"],
        "has tensors that its class does not have:": unexpected,
    }
    for problem in filter(problems.get, problems):
        raise CheckpointError(
            f"{checkpoint.path}: {problem} {first_few(sorted(map(str, problems[problem])))}; its config.json "
            "and its weights are of different models"
        )
