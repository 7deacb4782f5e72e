"""Run decoder layers on several devices (pipeline): hooks move the inputs of a layer to its device.

Hidden states move from each device to the next; masks and positions move from the first device to each
of the others, once in a pass. The CPU never waits for copies between GPUs, so the first GPU can run the
next batch while the second one runs the last.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import BlockMask
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.masks import moved_mask

Copies = dict[tuple[int, torch.device], tuple[Any, Any]]
"""Values that were moved in a pass, with their copies, by id and target: each is moved only once."""


def connect_layers(model: PreTrainedModel) -> None:
    """Let each layer and the head accept inputs on another device; the hooks stay on the model.

    Raises:
        ScoringError: When the model does not have its layers in a list.
    """
    layers = getattr(model.base_model, "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ScoringError(
            f"{type(model).__name__} has no list of decoder layers to distribute over several GPUs; "
            "set scoring.gpus_per_checkpoint: 1"
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

    # A function, not a method: the self-check copies a layer with everything that it refers to.
    module.register_forward_pre_hook(bring, with_kwargs=True)
