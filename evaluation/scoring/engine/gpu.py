"""What a GPU needs: sparse attention, compiled layers, copies that nobody waits for, errors.

All of it also runs on a CPU, where the tests compare it with plain passes.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention.flex_attention import BlockMask
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.flex_attention import flex_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from evaluation.errors import GpuFault, NotEnoughMemory, ScoringError, reason_of

Compiler = str | Callable[..., Any]
"""A backend of `torch.compile`."""

INDUCTOR: dict[str, Compiler] = {"cuda": "inductor"}
"""Backend for each kind of device on which layers are compiled."""

ATTENTION = "evaluation_scoring"
"""Name of `attend` in transformers, which makes no mask for it, and passes ours on."""

MOST_GRAPHS = 64
"""Most graphs of a function in one process: a few lengths of rows for each kind of layer, and as many again
each time that rows are halved for lack of memory."""

UNCOMPILED = "set scoring.compile: off"


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention: causal, or with a boolean mask, or with a sparse one."""
    if others.get("s_aux") is not None:
        raise ValueError(f"{type(module).__name__} has attention sinks")
    is_sparse = isinstance(attention_mask, BlockMask)
    run = flex_attention_forward if is_sparse else sdpa_attention_forward
    return run(module, query, key, value, attention_mask, **others)[0], None


AttentionInterface.register(ATTENTION, attend)


@cache
def compiled(
    function: Callable[..., Any], compiler: Compiler, *, is_dynamic: bool = False
) -> Callable[..., Any]:
    """Compile a function of a class or module, once per process; graph breaks are errors."""
    return torch.compile(function, dynamic=is_dynamic, fullgraph=True, backend=compiler)


def compile_layers(model: PreTrainedModel, compiler: Compiler) -> None:
    """Have decoder layers run compiled while the stance of torch.compiler is `default`; they share graphs.

    Weights are inputs of a graph, so the next layer and the next checkpoint use the same one.
    """
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise ScoringError(f"{type(model).__name__} does not name its decoder layers; {UNCOMPILED}")
    for layer in layers:
        layer.forward = partial(compiled(type(layer).forward, compiler), layer)
    torch._dynamo.config.recompile_limit = MOST_GRAPHS
    torch._dynamo.config.accumulated_recompile_limit = 4 * MOST_GRAPHS
    torch.compiler.set_stance("force_eager")


def to_device(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """Copy an array to a device; nothing waits, as the copy is from pinned memory."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def fetch(tensor: torch.Tensor) -> Callable[[], NDArray[np.float64]]:
    """Begin to copy a tensor to the host; return what waits for the copy, and returns it."""
    copy = tensor.to("cpu", non_blocking=True)  # from a GPU, to pinned memory
    done = torch.cuda.current_stream().record_event() if tensor.is_cuda else None

    def wait() -> NDArray[np.float64]:
        if done is not None:
            done.synchronize()
        return copy.numpy()

    return wait


@contextlib.contextmanager
def gpu_faults() -> Iterator[None]:
    """Convert errors of the GPU in the block to NotEnoughMemory or GpuFault."""
    try:
        yield
    except RuntimeError as error:
        cause = getattr(error, "inner_exception", error)  # torch.compile wraps errors
        reason, text = reason_of(cause), str(cause)
        if isinstance(cause, torch.OutOfMemoryError) or "_ALLOC_FAILED" in text:
            raise NotEnoughMemory(
                f"the GPU does not have enough memory ({reason}); see who else uses it (nvidia-smi), "
                "give the job a larger GPU, or set scoring.dtype: bfloat16"
            ) from error
        if isinstance(cause, torch.AcceleratorError) or "CUDA error" in text or "CUDNN" in text:
            raise GpuFault(
                f"the GPU failed in the middle of a run ({reason}); finished scores are stored, and the "
                "next run resumes from there; if it fails again, exclude the node and have its GPU checked"
            ) from error
        raise
