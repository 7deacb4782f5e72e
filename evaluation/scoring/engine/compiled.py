"""Decoder layers compiled one by one: all layers of a kind share a graph for each shape.

Compiled whole, a model would have a graph as long as it is deep, and would never be let go. A
layer's weights are inputs of its graph, so that the next layer, and the next checkpoint, runs in
the same one. The swap is undone after use, for the model is used by others too.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from evaluation.errors import CompileError

Compiler = str | Callable[..., Any]
"""What `torch.compile` takes as its backend."""

INDUCTOR = {"cuda": "inductor"}
"""What compiles layers on each kind of device that they are compiled for."""

MOST_GRAPHS = 64
"""Graphs of decoder layers in one process for each GPU that has layers. A job needs (2 for tasks +
1 or 2 for each length of text) x kinds of layers, twice as many again for each time that memory makes
it halve its rows."""


@cache
def compiled(function: Callable[..., Any], compiler: Compiler) -> Callable[..., Any]:
    """Compile a function of a class or module, once per process.

    No graph is ever left half compiled.

    Args:
        function: A forward pass, or a function of tensors.
        compiler: Backend of `torch.compile`.

    Returns:
        The compiled function.
    """
    return torch.compile(function, dynamic=False, fullgraph=True, backend=compiler)


def has_experts(model: PreTrainedModel) -> bool:
    """Return whether tokens choose the weights they go through.

    Args:
        model: Any model.

    Returns:
        True for a mixture of experts.
    """
    return any(type(module).__name__.endswith("Experts") for module in model.modules())


def _units(model: PreTrainedModel) -> list[nn.Module]:
    """Return the parts of a model that are compiled: its decoder layers."""
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise CompileError(
            f"{type(model).__name__} does not say what its decoder layers are (`_no_split_modules`), "
            "so they cannot be compiled for a GPU"
        )
    return layers


Parts = list[tuple[nn.Module, Callable[..., Any]]]
"""Parts of a model, and what runs in place of their forward pass."""


def compiled_parts(model: PreTrainedModel, compiler: Compiler) -> Parts:
    """Return the parts to compile, each with what runs in its place.

    Args:
        model: Any model.
        compiler: Backend of `torch.compile`.

    Returns:
        The decoder layers, not changed yet.

    Raises:
        CompileError: When the model does not say what its decoder layers are.
    """
    return [(part, partial(compiled(type(part).forward, compiler), part)) for part in _units(model)]


@contextlib.contextmanager
def running(parts: Parts) -> Iterator[None]:
    """Run the model with these parts compiled, as long as the block lasts.

    Args:
        parts: What `compiled_parts` gave for the model.
    """
    most = MOST_GRAPHS * len({next(part.parameters()).device for part, _ in parts})
    limits = {"recompile_limit": most, "accumulated_recompile_limit": 4 * most}
    for part, forward in parts:
        part.forward = forward
    try:
        with torch._dynamo.config.patch(limits):
            yield
    finally:
        for part, _ in parts:
            del part.forward
