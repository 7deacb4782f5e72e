"""Time, memory (Linux), the speed of a plain matrix product, a model: on the device at hand."""

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
    """Seconds (CPU time on CPU, else wall time), and bytes of memory taken at the highest point."""

    result: Result
    seconds: float
    added_bytes: int


def measure(device: torch.device, task: Callable[[], Result]) -> Measured[Result]:
    """Runs a task once."""
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
    """The most memory taken since the last measuring began: of the GPU, or of this process."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else _status("VmHWM")


def _start_memory(on_gpu: bool) -> int:
    """Forgets the highest point so far; returns what is taken now."""
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(key: str) -> int:
    """A line of Linux's account of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def matmul_flops(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of the best of a few square matrix products, by the same clock as `measure`."""
    size = 8192 if device.type == "cuda" else 1024
    a, b = torch.randn(2, size, size, device=device, dtype=dtype)
    torch.mm(a, b)
    seconds = min(measure(device, lambda: torch.mm(a, b)).seconds for _ in range(5))
    return 2 * size**3 / seconds


def load(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A Hugging Face folder's model on the device at hand, in float32 on CPU, and its tokenizer."""
    is_gpu = torch.cuda.is_available()
    dtype = torch.bfloat16 if is_gpu else torch.float32
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    return model.to("cuda" if is_gpu else "cpu").eval(), tokenizer
