"""Compile decoder layers one by one: all layers of a kind share one graph for each shape.

The graph of a whole model would be as long as the model is deep, and would keep the model in memory. A
layer's weights are inputs of its graph, so the next layer and the next checkpoint use the same graph.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

Compiler = str | Callable[..., Any]
"""A backend of `torch.compile`."""

INDUCTOR = {"cuda": "inductor"}
"""Backend for each kind of device on which layers are compiled."""


@cache
def compiled(function: Callable[..., Any], compiler: Compiler) -> Callable[..., Any]:
    """Compile a function of a class or module, once per process; graph breaks are errors."""
    return torch.compile(function, dynamic=False, fullgraph=True, backend=compiler)
