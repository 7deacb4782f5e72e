"""Decoder layers compiled one by one: all layers of a kind share a graph for each shape.

Compiled whole, a model would have a graph as long as it is deep, and would never be let go. A
layer's weights are inputs of its graph, so that the next layer, and the next checkpoint, runs in
the same one.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

Compiler = str | Callable[..., Any]
"""What `torch.compile` takes as its backend."""

INDUCTOR = {"cuda": "inductor"}
"""What compiles layers on each kind of device that they are compiled for."""


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
