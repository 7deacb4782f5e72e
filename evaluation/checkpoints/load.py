"""Load a checkpoint as a model in memory.

Nanotron's model is built without weights, its parameters are allocated once, and the shards are read
straight into them, so that the weights are in memory only once.
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
from evaluation.errors import NotEnoughMemory, UnsupportedCheckpoint
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
    """Return the checkpoint as a transformers model in evaluation mode, by default in its own dtype.

    As in Nanotron, routers of experts stay float32 and compute in it.

    Raises:
        CheckpointError: It is incomplete or unsound, or changes while it is read.
        ScoringError: It exceeds the memory.
    """
    dtype = dtype or getattr(torch, checkpoint.dtype)
    if torch.device(device).type == "cuda":
        needed, memory = (
            checkpoint.parameter_count * dtype.itemsize,
            torch.cuda.mem_get_info(device)[1],
        )
        if needed > memory:
            raise NotEnoughMemory(
                f"{checkpoint.path}: its weights need {needed / 1e9:,.1f} GB in {dtype}, and the GPU has "
                f"{memory / 1e9:,.1f} GB"
            )
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
    sources, arch = complete_parameters(checkpoint), checkpoint.architecture
    if arch.activation not in transformers.activations.ACT2FN:
        raise UnsupportedCheckpoint(
            f"{checkpoint.path}: `hidden_act` {arch.activation!r} is unknown to transformers; correct it"
        )
    if checkpoint.model_config.get("rope_scaling") is not None:
        log.warning("%s: `rope_scaling` is left out: Nanotron never applies it", checkpoint.path)
    try:
        model = _empty_model(arch, dtype, device)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise exceeds_memory(checkpoint, error) from None
    parameters, described = dict(model.named_parameters()), arch.transformers_model
    filled = {target.name for _, source in sources.values() for target in source.targets}
    if other := sorted((filled | described.zeros) ^ parameters.keys()):
        raise UnsupportedCheckpoint(
            f"{checkpoint.path}: this version of transformers has other parameters in its "
            f"{described.class_name} ({other[0]}, …); install the version that the lock file names"
        )
    for name in described.zeros:
        parameters[name].detach().zero_()
    load_weights(
        [(shard, source) for one, source in sources.values() for shard in one.shards], parameters
    )
    check_unchanged(checkpoint)
    return model


def _empty_model(
    arch: NanotronModel, dtype: torch.dtype, device: torch.device
) -> "PreTrainedModel":
    """Return the model with allocated but unset parameters (routers float32), and final buffers."""
    described = arch.transformers_model
    class_ = getattr(transformers, described.class_name)
    config = class_.config_class(**arch.common_config(), **described.config)
    rows = (config.hidden_size, described.config.get("moe_intermediate_size", 0))
    if rows[1] and any(size * dtype.itemsize % 16 for size in rows):
        config._experts_implementation = "eager"  # grouped products need 16 bytes
    with torch.device("meta"):
        model = class_._from_config(config, dtype=dtype, attn_implementation="sdpa")
    for name, old in list(model.named_parameters()):
        new_dtype = torch.float32 if name.endswith(f"{_ROUTER}.weight") else dtype
        new = torch.empty(old.shape, dtype=new_dtype, device=device)
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, nn.Parameter(new, requires_grad=False))
    model.tie_weights()
    # RoPE's frequencies are buffers that no file holds; on the meta device they have no values.
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config).to(device)
    for name, module in model.named_modules():
        if name.endswith(_ROUTER):
            module.register_forward_pre_hook(lambda _, inputs: tuple(one.float() for one in inputs))
    return model
