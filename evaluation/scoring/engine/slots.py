"""Keys and values of the answers being decoded.

Letters: H heads of keys and values, S tokens of a prompt, W columns of a slot, D width of a head.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from transformers import Cache

from evaluation.processes import usable_memory

WIDEN = 32
"""Widths of slots are multiples of this, so that there are few of them."""

SHARE = 0.8
"""Share of the free memory that is planned for; the rest is for prompts being read, and for gaps."""

_PER_LOGIT = 48  # bytes for each row and id: logits, shares, sorted shares and their running sums

States = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values (H, S, D) of a prompt in each layer."""


class Slots(Cache):  # type: ignore[misc]
    """Keys and values (rows, H, W, D) of each layer.

    A slot is filled from its first column on, so a token's column is its position.
    """

    def __init__(self, most: int, columns: int, like: States, vocabulary: int) -> None:
        """Make at most so many slots for such keys and values, fewer if free memory is for fewer."""
        super().__init__(layers=[])
        columns = -(-columns // WIDEN) * WIDEN
        size = sum(part.shape[0] * part.shape[2] * part.itemsize for part in chain(*like))
        device = like[0][0].device
        fitting = SHARE * _free_bytes(device) / (columns * size + vocabulary * _PER_LOGIT)
        self.count = min(most, max(1, int(fitting)))
        self._parts = [
            [part.new_zeros(self.count, part.shape[0], columns, part.shape[2]) for part in parts]
            for parts in like
        ]  # not NaN, which would pass any mask
        self._rows = self._places = torch.empty(0, dtype=torch.long, device=device)
        self._width = 0

    def begin(self, places: Sequence[int]) -> torch.Tensor:
        """Have the next pass add a token at such a position (rows, 1) to each of the first rows."""
        self._width = -(-(max(places) + 1) // WIDEN) * WIDEN
        self._places = self._rows.new_tensor(places)
        self._rows = torch.arange(len(places), device=self._places.device)
        return self._places[:, None]

    def put(self, slot: int, states: States) -> None:
        """Copy the keys and values of a prompt into a slot."""
        for part, read in zip(chain(*self._parts), chain(*states), strict=True):
            part[slot, :, : read.shape[1]] = read

    def move(self, origin: int, target: int, length: int) -> None:
        """Copy the first columns of a slot to another."""
        for part in chain(*self._parts):
            part[target, :, :length] = part[origin, :, :length]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add a token to each row, and return what the rows attend to."""
        for part, states in zip(self._parts[layer], (keys, values), strict=True):
            part[self._rows, :, self._places] = states[:, :, 0]
        keys, values = (part[: len(keys), :, : self._width] for part in self._parts[layer])
        return keys, values

    def mask(self, window: int | None) -> torch.Tensor:
        """Return which columns (rows, 1, 1, W) each row's next token attends to."""
        places = self._places[:, None, None, None]
        columns = torch.arange(self._width, device=places.device)
        visible: torch.Tensor = columns <= places
        return visible if window is None else visible & (places - columns < window)


def _free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return usable_memory()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]
