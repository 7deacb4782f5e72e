"""Turn errors of a GPU or its compiler into those that decide what is tried next.

CUDA reports an error at any later call, and from then on refuses all calls of the process. Finished
scores are in the store, and another process resumes from there.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from evaluation.errors import CompileError, EvaluationError, GpuFault, NotEnoughMemory
from evaluation.scoring.visible_gpus import holders, visible_names
from evaluation.wording import reason_of

_FAULT = re.compile(r"CUDA (driver )?error|Triton Error|CU[A-Z]+_STATUS_|cuDNN error")
_NO_MEMORY = re.compile(r"out of memory|_ALLOC_FAILED")
_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch", "triton", "subprocess")
"""Modules of what fails where layers are compiled; the last one for the C compiler, which Triton starts."""


@contextmanager
def gpu_faults() -> Iterator[None]:
    """Convert errors of the GPU in the block to this project's errors; let other errors pass.

    Raises:
        NotEnoughMemory: When its memory is exhausted, whichever library reports that.
        GpuFault: When it failed, and this process cannot use it any more.
        CompileError: When the model's layers could not be compiled.
    """
    try:
        yield
    except EvaluationError:
        raise
    except Exception as error:
        if (fault := _fault(error)) is None:
            raise
        raise fault from error


def _fault(error: Exception) -> EvaluationError | None:
    # torch.compile wraps errors.
    cause: Any = getattr(error, "inner_exception", error.__cause__) or error
    text, reason = f"{error}\n{cause}", reason_of(cause)
    is_fault = isinstance(cause, torch.AcceleratorError) or _FAULT.search(text)
    if isinstance(cause, torch.OutOfMemoryError) or (is_fault and _NO_MEMORY.search(text)):
        return NotEnoughMemory(f"the GPU does not have enough memory ({reason})")
    if is_fault:
        return GpuFault(
            f"the GPU failed in the middle of a run ({reason}); finished scores are stored, and the next run "
            "resumes from there; if it fails again, exclude the node and have its GPU checked"
        )
    if type(error).__module__.startswith(_COMPILERS):
        return CompileError(f"the model's layers cannot be compiled for this GPU ({reason})")
    return None


def too_little_memory(what: str) -> NotEnoughMemory:
    """Return an error that names the other processes in the GPU's memory, or else the remedy.

    Args:
        what: Beginning of the sentence: what exceeds the memory.
    """
    others = holders(visible_names()[:1])
    remedy = "give the job a GPU with more memory, or set scoring.dtype: bfloat16 if it is not"
    return NotEnoughMemory(f"{what}; {f'it is also held by {others}' if others else remedy}")
