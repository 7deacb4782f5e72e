"""The GPUs that this process may use, and processes that have some of them each."""

import os
from collections.abc import Sequence

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> list[str]:
    """Return the names of all GPUs that this process sees, as CUDA_VISIBLE_DEVICES writes them."""
    listed = os.environ.get(VISIBLE)
    if listed is None:
        import torch

        listed = ",".join(map(str, range(torch.cuda.device_count())))
    return [name for name in listed.split(",") if name not in ("", "-1")]


def in_groups(names: Sequence[str], size: int) -> list[str]:
    """Return values of CUDA_VISIBLE_DEVICES with as many GPUs each; GPUs that fill no group are left out."""
    starts = range(0, len(names) - len(names) % size, size)
    return [",".join(names[start : start + size]) for start in starts]
