"""Decoder layers on several devices: hooks move what a layer takes to its device.

Hidden states move from each device to the next; masks, positions and the like from the first device to
each of the others, once in a pass. No copy between GPUs is waited for, so the next packed rows run on
the first GPU while the last ones are on the second.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import BlockMask
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.masks import moved_mask

Copies = dict[tuple[int, torch.device], tuple[Any, Any]]
"""What was moved in a pass, by its id and where to, so that it is moved once: it, and its copy."""


def connect_layers(model: PreTrainedModel) -> None:
    """Let each layer, and the head, take what is on another device.

    Args:
        model: A model whose layers are on several devices; it is changed for good.

    Raises:
        ScoringError: When the model does not have its layers in a list.
    """
    layers = getattr(model.base_model, "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ScoringError(
            f"{type(model).__name__} has no list of decoder layers that could be distributed over several "
            "GPUs; set scoring.gpus_per_checkpoint: 1"
        )
    copies: Copies = {}
    for module in (*layers, model.get_output_embeddings()):
        _bring_inputs(module, next(module.parameters()).device, copies)

    def forget(*_: Any) -> None:
        copies.clear()

    model.base_model.register_forward_hook(forget, always_call=True)


def _bring_inputs(module: nn.Module, device: torch.device, copies: Copies) -> None:
    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(moved, value))
        if not hasattr(value, "to"):
            return value
        key = id(value), device
        if key not in copies:
            is_sparse = isinstance(value, BlockMask)
            copies[key] = value, moved_mask(value, device) if is_sparse else value.to(device)
        return copies[key][1]

    def bring(_: nn.Module, inputs: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return moved(inputs), {name: moved(value) for name, value in named.items()}

    # A function, and no method: a layer is copied for the self-check, and what it holds with it.
    module.register_forward_pre_hook(bring, with_kwargs=True)
