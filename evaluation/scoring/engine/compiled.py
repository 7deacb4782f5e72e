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


@contextlib.contextmanager
def compiled_layers(model: PreTrainedModel, compiler: Compiler) -> Iterator[None]:
    """Run the model with its decoder layers compiled, as long as the block lasts.

    Args:
        model: Any model.
        compiler: Backend of `torch.compile`.

    Raises:
        CompileError: When the model does not say what its decoder layers are.
    """
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise CompileError(
            f"{type(model).__name__} does not say what its decoder layers are (`_no_split_modules`), "
            "so they cannot be compiled for a GPU"
        )
    most = MOST_GRAPHS * len({next(layer.parameters()).device for layer in layers})
    limits = {"recompile_limit": most, "accumulated_recompile_limit": 4 * most}
    for layer in layers:
        layer.forward = partial(compiled(type(layer).forward, compiler), layer)
    try:
        with torch._dynamo.config.patch(limits):
            yield
    finally:
        for layer in layers:
            del layer.forward
