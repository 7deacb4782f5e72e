"""What a GPU, its driver or its compiler raise in the middle of a run, as one sentence.

CUDA tells an error at whatever call comes next, and from then on refuses all calls of the process:
it is over, but what was scored is in the store, and another process goes on from there.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from evaluation.command_hints import evaluation
from evaluation.errors import (
    CompileError,
    EvaluationError,
    GpuFault,
    NotEnoughMemory,
    ScoringError,
)
from evaluation.scoring.engine.device import ANOTHER_BUILD
from evaluation.scoring.engine.gpus import holders, visible_gpus

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
    """Raise faults of the GPU in the block as this project's errors; let others pass.

    Raises:
        NotEnoughMemory: it has too little left, by whatever library that is said.
        GpuFault: it failed, and this process cannot use it any more.
        CompileError: what the model is run by could not be compiled.
        ScoringError: this build of PyTorch has nothing for this GPU.
    """
    try:
        yield
    except EvaluationError:
        raise
    except Exception as error:
        cause = getattr(error, "inner_exception", error)  # compiling wraps what it met
        text = f"{cause}\n{error.__cause__ or ''}"
        is_memory = isinstance(cause, torch.OutOfMemoryError)
        is_fault = isinstance(cause, torch.AcceleratorError) or _FAULT.search(text)
        if is_memory or (is_fault and _NO_MEMORY.search(text)):
            raise NotEnoughMemory(f"the GPU has not enough memory ({_said(text)})") from error
        if is_fault and _NO_KERNELS.search(text):
            raise ScoringError(
                f"PyTorch {torch.__version__} was not built for this GPU and its driver ({_said(text)}); "
                f"install another build ({ANOTHER_BUILD})"
            ) from error
        if is_fault:
            raise GpuFault(_of_gpu(_said(text))) from error
        if (sentence := _of_compiler(error, text)) is None:
            raise
        raise CompileError(sentence) from error


def _of_gpu(said: str) -> str:
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    return (
        f"{_gpu_of(node)} failed in the middle of a run ({said}); what is scored is kept, and running "
        "again goes on from there; if it fails again, leave the node out "
        f"(`sbatch --exclude={node}`) and have its GPU looked at"
    )


def _gpu_of(node: str) -> str:
    """Name a node's GPU by title and UUID as NVML has them, which may not reach it any more."""
    try:
        gpus = visible_gpus()
    except ScoringError as error:
        return f"the GPU of {node}, of which {str(error).partition(';')[0]},"
    return f"{gpus[0].title}, {gpus[0].uuid}, of {node}" if gpus else f"the GPU of {node}"


def _of_compiler(error: Exception, text: str) -> str | None:
    """Return a sentence where compiling failed."""
    if type(error).__name__ == "FailOnRecompileLimitHit":
        return (
            "the model's layers were compiled too often, for other shapes or masks each time; score "
            "fewer stages in one process"
        )
    if not _NO_COMPILER.search(text) and not type(error).__module__.startswith(_COMPILERS):
        return None
    return (
        f"the model's layers cannot be compiled for this GPU ({_said(text)}); "
        f"`{evaluation('doctor')}` on the same node shows what is missing"
    )


def too_little_memory(what: str) -> NotEnoughMemory:
    """Say what memory is too little for, who else has some of it, and what to do."""
    rest = "give the job a GPU with more memory, or set scoring.dtype: bfloat16 if it is not"
    try:
        gpus = visible_gpus()
    except ScoringError as error:
        return NotEnoughMemory(f"{what}; {error}")
    held = [gpu for gpu in gpus if gpu.processes and gpu.used is not None]
    return NotEnoughMemory(f"{what}; {holders(held[0]) if held else rest}")


def _said(text: str) -> str:
    """Return the line that tells most: one that names a fault, or else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _FAULT.search(line) or _NO_COMPILER.search(line)]
    return next(iter([*telling, *lines]), "without a word")[:200]
