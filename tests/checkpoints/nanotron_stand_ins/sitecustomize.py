"""Lets Nanotron's own code run without a GPU: what it asks of CUDA is given by the CPU, in float32.

Its assertions that tensors are on a GPU are left out by `python -O`.
"""

from typing import Any

import torch
import torch.distributed
from torch.overrides import TorchFunctionMode


def on_cpu(value: Any) -> Any:
    """Return the CPU in place of a GPU, and other values as they are."""
    named = isinstance(value, str) and value.startswith("cuda")
    is_gpu = named or (isinstance(value, torch.device) and value.type == "cuda")
    return torch.device("cpu") if is_gpu else value


class CpuForGpu(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {key: on_cpu(value) for key, value in (kwargs or {}).items()}
        return func(*map(on_cpu, args), **named)


CpuForGpu().__enter__()
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda.device = lambda number: number
torch.cuda.set_device = lambda number: None
torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = lambda *_: 0
torch.cuda.max_memory_reserved = lambda *_: 0
_begin = torch.distributed.init_process_group
torch.distributed.init_process_group = lambda **told: _begin(**{**told, "backend": "gloo"})
_group = torch.distributed.new_group
torch.distributed.new_group = lambda *given, **told: _group(*given, **{**told, "backend": "gloo"})
