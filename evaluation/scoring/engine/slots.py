"""Keys and values of prompts that are read, and of the answers being decoded.

Letters: B rows, H heads of keys and values, S tokens of a row, W columns of a slot, D width of a head.
"""

from itertools import chain
from typing import Any

import torch
from transformers import Cache

from evaluation.processes import usable_memory

WIDEN = 32
"""Widths of slots are multiples of this, so that there are few of them."""

SHARE = 0.8
"""Share of the free memory that is planned for; the rest is for prompts being read, and for gaps."""

_WIDER = 1.25  # a slot is widened by a quarter at least, so it may be this much wider than needed
_PER_LOGIT = 48  # bytes for each row and id: logits, shares, sorted shares and their running sums

States = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of a layer."""


class PrefillCache(Cache):  # type: ignore[misc]
    """Keys and values (B, H, S, D) of each layer for one batch of prompts."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.parts: dict[int, States] = {}

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> States:
        """Keep a layer's keys and values."""
        self.parts[layer] = keys, values
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return how many tokens were read before: none."""
        return 0


class Slots(Cache):  # type: ignore[misc]
    """Keys and values (rows, H, W, D) of each layer, and each row's next token and its position.

    A slot is filled from its first column on, so a token's column is its position.
    """

    def __init__(self, rows: int, like: PrefillCache) -> None:
        """Make empty slots, of width 0, for such keys and values."""
        super().__init__(layers=[])
        self.parts = {
            layer: [part.new_zeros(rows, part.shape[1], 0, part.shape[3]) for part in parts]
            for layer, parts in like.parts.items()
        }
        device = like.parts[0][0].device
        self.ids, self.places = torch.zeros(2, rows, dtype=torch.long, device=device)
        self._index, self.width = torch.arange(rows, device=device), 0

    def widen(self, width: int) -> None:
        """Have the next pass read so many columns, rounded up; new ones are 0, as NaN would pass any mask."""
        self.width = -(-width // WIDEN) * WIDEN
        for parts in self.parts.values():
            before = parts[0].shape[2]
            if width > before:
                wider = -(-max(width, before * 5 // 4) // WIDEN) * WIDEN
                for at, part in enumerate(parts):  # only one is in memory twice
                    parts[at] = torch.nn.functional.pad(part, (0, 0, 0, wider - before))

    def put(self, slot: int, reading: PrefillCache, row: int, path: torch.Tensor) -> None:
        """Copy the keys and values of a prompt from the tokens of its path in a packed row."""
        for layer, parts in reading.parts.items():
            for slots, read in zip(self.parts[layer], parts, strict=True):
                slots[slot, :, : len(path)] = read[row].index_select(1, path)
        self.places[slot] = len(path)

    def move(self, origin: int, target: int, length: int) -> None:
        """Copy the first columns of a slot, and its token, to another."""
        for part in chain.from_iterable(self.parts.values()):
            part[target, :, :length] = part[origin, :, :length]
        for column in (self.ids, self.places):
            column[target] = column[origin].clone()

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> States:
        """Add a token to each row, and return what the rows attend to."""
        rows = len(keys)
        for part, states in zip(self.parts[layer], (keys, values), strict=True):
            part[self._index[:rows], :, self.places[:rows]] = states[:, :, 0]
        keys, values = (part[:rows, :, : self.width] for part in self.parts[layer])
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the longest position; positions are given for each row."""
        return self.width


def rows_in_memory(like: PrefillCache, columns: int, vocabulary: int) -> int:
    """Return how many rows of so many columns fit the free memory, with keys and values like these."""
    parts = [part for parts in like.parts.values() for part in parts]
    size = sum(part.shape[1] * part.shape[3] * part.dtype.itemsize for part in parts)
    free = free_bytes(parts[0].device)
    return max(1, int(free * SHARE / (columns * _WIDER * size + vocabulary * _PER_LOGIT)))


def free_bytes(device: torch.device) -> int:
    """Return a device's free memory, with what this process has reserved and does not use."""
    if device.type != "cuda":
        return usable_memory()
    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + reserved
