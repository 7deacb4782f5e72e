"""On which device each part of a model is, where its layers are dealt over several.

Every device has as many successive layers as the others, give or take one. Embeddings are with the
first layer; the last norm and the head with the last one, but a head that is tied to the embedding is
where that is.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from evaluation.checkpoints.format import Checkpoint, text_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


def layer_count(checkpoint: Checkpoint) -> int:
    """Return how many layers a checkpoint's configuration states, 0 if it does not."""
    layers = text_config(checkpoint.model_config).get("num_hidden_layers")
    return layers if type(layers) is int else 0


def device_number(parameter: str, layers: int, devices: int) -> int:
    """Return which of the devices holds a parameter of a model with so many layers, by its name."""
    if layer := _LAYER.search(parameter):
        return int(layer[1]) * devices // layers
    return 0 if "embed" in parameter else devices - 1


def place(model: "PreTrainedModel", devices: Sequence[torch.device]) -> None:
    """Move a model's parameters to their devices, and buffers outside of layers to the first."""
    layers = model.config.get_text_config().num_hidden_layers
    for name, parameter in model.named_parameters():
        parameter.data = parameter.data.to(devices[device_number(name, layers, len(devices))])
    for name, buffer in model.named_buffers():
        is_in_layer = _LAYER.search(name) is not None
        number = device_number(name, layers, len(devices)) if is_in_layer else 0
        buffer.data = buffer.data.to(devices[number])
