"""Measure time, memory (Linux) and the speed of matrix products on the available device; load a model."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Measured(Generic[Result]):
    """Seconds (CPU time on CPU, wall time on a GPU), and the peak of bytes added to memory."""

    result: Result
    seconds: float
    added_bytes: int


def measure(device: torch.device, task: Callable[[], Result]) -> Measured[Result]:
    """Run a task once and measure it."""
    on_gpu = device.type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    before = _start_memory(on_gpu)
    start = clock()
    result = task()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = clock() - start
    return Measured(result, seconds, peak_bytes(device) - before)


def peak_bytes(device: torch.device) -> int:
    """Return the peak memory of the GPU, or of this process, since the last measurement began."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else _status("VmHWM")


def _start_memory(on_gpu: bool) -> int:
    """Reset the peak; return the bytes in use now."""
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(key: str) -> int:
    """Return a number from /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def matmul_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Return the FLOP/s of the fastest of a few square matrix products, by the clock of `measure`."""
    size = 8192 if device.type == "cuda" else 1024
    a, b = torch.randn(2, size, size, device=device, dtype=dtype)
    torch.mm(a, b)
    seconds = min(measure(device, lambda: torch.mm(a, b)).seconds for _ in range(5))
    return 2 * size**3 / seconds


def load(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a Hugging Face folder's model on the available device (float32 on CPU), and its tokenizer."""
    is_gpu = torch.cuda.is_available()
    dtype = torch.bfloat16 if is_gpu else torch.float32
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    return model.to("cuda" if is_gpu else "cpu").eval(), tokenizer
