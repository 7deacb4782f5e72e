"""The GPUs that this process may use, by name, and processes that have some of them each."""

import os
from collections.abc import Sequence
from itertools import takewhile

VISIBLE = "CUDA_VISIBLE_DEVICES"

_NONE = ("", "-1", "NoDevFiles")
"""Entries of CUDA_VISIBLE_DEVICES from which on there is no GPU; Slurm writes the last one."""


def named_in(listed: str) -> list[str]:
    """Return the names of GPUs in a value of CUDA_VISIBLE_DEVICES, as CUDA reads it."""
    return list(takewhile(lambda name: name not in _NONE, map(str.strip, listed.split(","))))


def visible_names() -> list[str]:
    """Return the names of all GPUs that this process sees, as CUDA_VISIBLE_DEVICES writes them."""
    if (listed := os.environ.get(VISIBLE)) is not None:
        return named_in(listed)
    import torch

    return list(map(str, range(torch.cuda.device_count())))


def in_groups(names: Sequence[str], size: int) -> list[str]:
    """Return values of CUDA_VISIBLE_DEVICES with as many GPUs each; GPUs that fill no group are left out."""
    starts = range(0, len(names) - len(names) % size, size)
    return [",".join(names[start : start + size]) for start in starts]
