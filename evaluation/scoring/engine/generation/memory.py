"""Decide how many answers are decoded at once: as many as fit the free memory.

A decoding step reads all weights once, however many rows it has. So on a GPU, more rows cost little more
time, until their keys and values are as large as the weights.
"""

import torch

from evaluation.allowance import usable_memory
from evaluation.scoring.engine.generation.kv_cache import Prefix

MOST = {"cpu": 64, "cuda": 1024}
"""Most rows by default, by the type of device."""

SHARE = 0.8
"""Share of the free memory that is planned for; the rest is for prompts being read, and for gaps."""

_WIDER = 1.25
"""A slot is widened by a quarter at least, so it may be this much wider than its longest answer."""

_PER_LOGIT = 48
"""Bytes for each row and id of the vocabulary: logits, shares, sorted shares and their running sums."""


def rows_in_memory(example: Prefix, columns: int, vocabulary: int) -> int:
    """Return how many rows fit, from a prompt's keys and values.

    Args:
        columns: Tokens of the longest prompt with its answer.
    """
    parts = (*example.keys, *example.values)
    size = sum(part.shape[0] * part.shape[2] * part.dtype.itemsize for part in parts)
    free = free_bytes(parts[0].device)
    return max(1, int(free * SHARE / (columns * _WIDER * size + vocabulary * _PER_LOGIT)))


def free_bytes(device: torch.device) -> int:
    """Return a device's free memory, with what this process has reserved and does not use."""
    if device.type != "cuda":
        return usable_memory()
    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + reserved
