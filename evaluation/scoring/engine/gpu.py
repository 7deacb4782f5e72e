"""What a GPU needs: sparse masks, compiled layers of fixed shapes, copies that nobody waits for, errors.

All of it also runs on a CPU, where the tests compare it with plain passes.

Letters: B rows, S tokens of a row, H heads, D width of a head.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from evaluation.errors import CompileError, EvaluationError, GpuFault, NotEnoughMemory, reason_of
from evaluation.scoring.engine.masks import BLOCK

Compiler = str | Callable[..., Any]
"""A backend of `torch.compile`."""

INDUCTOR: dict[str, Compiler] = {"cuda": "inductor"}
"""Backend for each kind of device on which layers are compiled."""

ATTENTION = "evaluation_scoring"
"""Name of `attend` in transformers, which makes no mask for it, and passes ours on."""

MOST_GRAPHS = 64
"""Most graphs of decoder layers in one process. A job needs (2 for tries + 1 for each length of text) x
kinds of layers, and as many again each time that it halves its rows for lack of memory."""


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | BlockMask | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention (B, S, H, D) of (B, H, S, D): causal, with a boolean mask, or with a sparse one."""
    for name in ("softcap", "s_aux", "position_bias"):
        if others.get(name) is not None:
            raise ValueError(f"{type(module).__name__} computes attention with `{name}`")
    if not isinstance(attention_mask, BlockMask):
        dense: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return dense
    is_grouped = query.shape[1] > key.shape[1]
    output = flex_attention(
        query, key, value, block_mask=attention_mask, scale=scaling, enable_gqa=is_grouped
    )
    assert isinstance(output, torch.Tensor)
    return output.transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, attend)


@contextlib.contextmanager
def attention_by(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Have a model use an attention function of transformers while the block lasts."""
    before = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


class Shape(NamedTuple):
    """Rows of a forward pass, and tokens of each."""

    rows: int
    length: int


def shape_of(length: int, row_tokens: int, *, is_text: bool) -> Shape:
    """Return the shape to which a row is padded if layers are compiled, since each is compiled once.

    Text: as many blocks as the budget holds. Tries: one row of a quarter of the budget, of all of it,
    or of a power of two times as much.
    """
    block = -(-length // BLOCK) * BLOCK
    if is_text:
        return Shape(max(1, row_tokens // block), block)
    full = -(-row_tokens // BLOCK) * BLOCK
    quarter = -(-full // 4 // BLOCK) * BLOCK
    if length <= quarter:
        return Shape(1, quarter)
    while full < length:
        full *= 2
    return Shape(1, full)


@cache
def compiled(function: Callable[..., Any], compiler: Compiler) -> Callable[..., Any]:
    """Compile a function of a class or module, once per process; graph breaks are errors."""
    return torch.compile(function, dynamic=False, fullgraph=True, backend=compiler)


@contextlib.contextmanager
def compiled_layers(model: PreTrainedModel, compiler: Compiler | None) -> Iterator[None]:
    """Run the model with compiled decoder layers while the block lasts, which share graphs.

    Weights are inputs of a graph, so the next layer and the next checkpoint use the same one.
    """
    if compiler is None:
        yield
        return
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise CompileError(f"{type(model).__name__} does not name its decoder layers")
    limits = {"recompile_limit": MOST_GRAPHS, "accumulated_recompile_limit": 4 * MOST_GRAPHS}
    for layer in layers:
        layer.forward = partial(compiled(type(layer).forward, compiler), layer)
    try:
        with torch._dynamo.config.patch(limits):
            yield
    finally:
        for layer in layers:
            del layer.forward


def keep_compiled(cache_folder: Path) -> None:
    """Have torch and Triton store compiled kernels in the shared cache, unless the user has set where."""
    versions = "_".join(f"{name}-{version(name)}" for name in ("torch", "transformers"))
    folder = cache_folder / "compiled" / versions
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))
    os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))


class HostCopy:
    """Tensors on their way to the host, for which nothing waits until they are needed."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self._copies, self._done = tensors, None
        if tensors[0].is_cuda:
            self._copies = tuple(
                torch.empty_like(part, device="cpu", pin_memory=True).copy_(part, non_blocking=True)
                for part in tensors
            )
            self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._done.record()

    def wait(self) -> tuple[torch.Tensor, ...]:
        """Return the copies once they are complete."""
        if self._done is not None:
            self._done.synchronize()
        return self._copies


_FAULT = re.compile(r"CUDA (driver )?error|Triton Error|CU[A-Z]+_STATUS_|cuDNN error")
_NO_MEMORY = re.compile(r"out of memory|_ALLOC_FAILED")
_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch", "triton", "subprocess")
"""Modules of what fails where layers are compiled; the last one for the C compiler, which Triton starts."""


@contextlib.contextmanager
def gpu_faults() -> Iterator[None]:
    """Convert errors of the GPU in the block to NotEnoughMemory, GpuFault or CompileError."""
    try:
        yield
    except EvaluationError:
        raise
    except Exception as error:
        # torch.compile wraps errors.
        cause: Any = getattr(error, "inner_exception", error.__cause__) or error
        text, reason = f"{error}\n{cause}", reason_of(cause)
        is_fault = isinstance(cause, torch.AcceleratorError) or _FAULT.search(text)
        if isinstance(cause, torch.OutOfMemoryError) or (is_fault and _NO_MEMORY.search(text)):
            raise NotEnoughMemory(f"the GPU does not have enough memory ({reason})") from error
        if is_fault:
            raise GpuFault(
                f"the GPU failed in the middle of a run ({reason}); finished scores are stored, and the "
                "next run resumes from there; if it fails again, exclude the node and have its GPU checked"
            ) from error
        if type(error).__module__.startswith(_COMPILERS):
            raise CompileError(
                f"the model's layers cannot be compiled for this GPU ({reason})"
            ) from error
        raise
