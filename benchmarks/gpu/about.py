"""What the figures were taken on."""

import os
import platform
import time
from typing import Any

import torch
import transformers

from benchmarks.gpu.data import Data
from benchmarks.gpu.session import Options


def describe(options: Options, data: Data) -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": _device(options.device),
        "clock": "wall" if options.device == "cuda" else "CPU",
        "dtype": options.dtype,
        "row_tokens": options.row_tokens,
        "threads": options.threads,
        "cpus": os.cpu_count(),
        "seed": options.seed,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
        "data": data.about,
        "tasks": {task.name: task.questions for task in data.tasks},
        "slices": {one.name: list(one.tokens.shape) for one in data.slices},
    }


def _device(device: str) -> dict[str, Any]:
    if device == "cpu":
        return {"name": platform.processor() or platform.machine()}
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_gb": properties.total_memory / 1e9,
        "multiprocessors": properties.multi_processor_count,
    }
