"""Load a checkpoint as a model in memory.

The model is built without weights, its parameters are allocated once, and the shards are read in
chunks straight into them, so that the weights are in memory only once.
"""

import logging
from typing import TYPE_CHECKING

import torch
import transformers
from torch import nn

from evaluation.checkpoints.completeness import check_complete, check_unchanged, complete_parameters
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.nanotron_classes.base import NanotronModel
from evaluation.checkpoints.pretrained import exceeds_memory, load_pretrained
from evaluation.checkpoints.weights import load_weights
from evaluation.errors import UnsupportedCheckpoint
from evaluation.processes import is_out_of_memory

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

_ROUTER = ".mlp.gate"


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> "PreTrainedModel":
    """Return the checkpoint as a transformers model in evaluation mode, without gradients.

    As in Nanotron, routers of experts stay float32 and compute in it.

    Args:
        dtype: Dtype of the parameters; None keeps the checkpoint's.

    Raises:
        CheckpointError: It is incomplete or unsound, or changes while it is read.
        ScoringError: It exceeds the memory.
    """
    dtype = dtype or getattr(torch, checkpoint.dtype)
    if checkpoint.kind == "huggingface":
        check_complete(checkpoint)
        model = load_pretrained(checkpoint, dtype)
        check_complete(checkpoint)
    else:
        model = _load_nanotron(checkpoint, dtype, torch.device(device))
    return model.requires_grad_(False).to(device).eval()


def _load_nanotron(
    checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device
) -> "PreTrainedModel":
    sources = complete_parameters(checkpoint)
    arch = checkpoint.architecture
    _check_representable(checkpoint, arch)
    try:
        model = empty_model(arch, dtype, device)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise exceeds_memory(checkpoint, error) from None
    parameters = dict(model.named_parameters())
    filled = {target.name for _, source in sources.values() for target in source.targets}
    zeros = arch.transformers_model.zeros
    if filled | zeros != parameters.keys():
        raise UnsupportedCheckpoint(
            f"{checkpoint.path}: this version of transformers has other parameters in its "
            f"{arch.transformers_model.class_name} ({sorted((filled | zeros) ^ parameters.keys())[0]}, …); "
            "install the version that the lock file names"
        )
    for name in zeros:
        parameters[name].detach().zero_()
    shards = [(shard, source) for one, source in sources.values() for shard in one.shards]
    load_weights(shards, parameters)
    check_unchanged(checkpoint)
    return model


def _check_representable(checkpoint: Checkpoint, arch: NanotronModel) -> None:
    """Raise UnsupportedCheckpoint for an unknown activation; warn of what Nanotron ignores."""
    if arch.activation not in transformers.activations.ACT2FN:
        raise UnsupportedCheckpoint(
            f"{checkpoint.path}: `hidden_act` {arch.activation!r} is unknown to transformers; correct it"
        )
    if checkpoint.model_config.get("rope_scaling") is not None:
        log.warning("%s: `rope_scaling` is left out: Nanotron never applies it", checkpoint.path)


def empty_model(arch: NanotronModel, dtype: torch.dtype, device: torch.device) -> "PreTrainedModel":
    """Return the model with allocated but unset parameters (routers float32), and final buffers."""
    described = arch.transformers_model
    class_ = getattr(transformers, described.class_name)
    config = class_.config_class(**arch.common_config(), **described.config)
    if arch.expert_sizes is not None and not _are_aligned(arch, dtype):
        config._experts_implementation = "eager"
    with torch.device("meta"):
        model = class_._from_config(config, dtype=dtype, attn_implementation="sdpa")
    for name, old in list(model.named_parameters()):
        new_dtype = torch.float32 if name.endswith(f"{_ROUTER}.weight") else dtype
        new = torch.empty(old.shape, dtype=new_dtype, device=device)
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, nn.Parameter(new, requires_grad=False))
    model.tie_weights()
    # RoPE's frequencies are buffers that no file holds; on the meta device they have no values.
    rotary = type(model.model.rotary_emb)(config=model.config)
    model.model.rotary_emb = rotary.to(device)
    for name, module in model.named_modules():
        if name.endswith(_ROUTER):
            module.register_forward_pre_hook(_in_float32)
    return model


def _are_aligned(arch: NanotronModel, dtype: torch.dtype) -> bool:
    """Return whether rows of the experts are multiples of 16 bytes, as grouped matrix products need."""
    sizes = (arch.hidden_size, arch.expert_sizes[2] if arch.expert_sizes else 0)
    return all(size * dtype.itemsize % 16 == 0 for size in sizes)


def _in_float32(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(item.float() for item in inputs)
