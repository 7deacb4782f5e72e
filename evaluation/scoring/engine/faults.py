"""Turn errors of a GPU, its driver or its compiler into this project's errors.

CUDA reports an error at any later call, and from then on refuses all calls of the process. Finished
scores are in the store, and another process resumes from there.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from evaluation.errors import CompileError, EvaluationError, GpuFault, NotEnoughMemory, ScoringError
from evaluation.scoring.engine.device import ANOTHER_BUILD
from evaluation.scoring.engine.gpus import visible_gpus

_FAULT = re.compile(
    r"CUDA error|CUDA driver error|HIP error|Triton Error \[(CUDA|HIP)\]|BLAS_STATUS_|CUDNN_STATUS_"
    r"|cuDNN error|CUSOLVER_STATUS_|NCCL error|device-side assert|unspecified launch failure"
)
_NO_MEMORY = re.compile(r"out of memory|_ALLOC_FAILED", re.IGNORECASE)
_NO_KERNELS = re.compile(
    r"no kernel image|invalid device function|unsupported toolchain|driver version is insufficient",
    re.IGNORECASE,
)
_NO_COMPILER = re.compile(r"Failed to find C compiler|Python\.h: No such file")
_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch", "triton")


@contextmanager
def gpu_faults() -> Iterator[None]:
    """Convert errors of the GPU in the block to this project's errors; let other errors pass.

    Raises:
        NotEnoughMemory: When its memory is exhausted, whichever library reports that.
        GpuFault: When it failed, and this process cannot use it any more.
        CompileError: When the model's layers could not be compiled.
        ScoringError: When this build of PyTorch has no kernels for this GPU.
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
    cause = getattr(error, "inner_exception", error)  # torch.compile wraps errors
    text = f"{cause}\n{error.__cause__ or ''}"
    reason = _reason(text)
    is_memory = isinstance(cause, torch.OutOfMemoryError)
    is_fault = isinstance(cause, torch.AcceleratorError) or _FAULT.search(text)
    if is_memory or (is_fault and _NO_MEMORY.search(text)):
        return NotEnoughMemory(f"the GPU does not have enough memory ({reason})")
    if is_fault and _NO_KERNELS.search(text):
        return ScoringError(
            f"PyTorch {torch.__version__} was not built for this GPU and its driver ({reason}); "
            f"install another build ({ANOTHER_BUILD})"
        )
    if is_fault:
        node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        return GpuFault(
            f"{_gpu_of(node)} failed in the middle of a run ({reason}); finished scores are stored, and "
            "the next run resumes from there; if it fails again, exclude the node "
            f"(`sbatch --exclude={node}`) and have its GPU checked"
        )
    if type(error).__name__ == "FailOnRecompileLimitHit":
        return CompileError(
            "the model's layers were compiled too often, each time for other shapes or masks; score "
            "fewer stages in one process"
        )
    if _NO_COMPILER.search(text) or type(error).__module__.startswith(_COMPILERS):
        return CompileError(
            f"the model's layers cannot be compiled for this GPU ({reason}); "
            f"`python -m evaluation doctor` on the same node shows what is missing"
        )
    return None


def _gpu_of(node: str) -> str:
    """Return the name of a node's GPU, with title and UUID if NVML still reaches it."""
    try:
        gpus = visible_gpus()
    except ScoringError as error:
        return f"the GPU of {node}, of which {str(error).partition(';')[0]},"
    return f"{gpus[0].title}, {gpus[0].uuid}, of {node}" if gpus else f"the GPU of {node}"


def too_little_memory(what: str) -> NotEnoughMemory:
    """Return an error that names the other processes in the GPU's memory, or else the remedy.

    Args:
        what: Beginning of the sentence: what exceeds the memory.
    """
    try:
        gpus = visible_gpus()
    except ScoringError as error:
        return NotEnoughMemory(f"{what}; {error}")
    shared = next((gpu for gpu in gpus if gpu.processes and gpu.used is not None), None)
    remedy = "give the job a GPU with more memory, or set scoring.dtype: bfloat16 if it is not"
    return NotEnoughMemory(f"{what}; {shared.holders if shared else remedy}")


def _reason(text: str) -> str:
    """Return the line of an error's text that names the fault, or else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _FAULT.search(line) or _NO_COMPILER.search(line)]
    return next(iter([*telling, *lines]), "no message")[:200]
