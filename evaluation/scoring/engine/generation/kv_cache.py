"""Key-value caches of prompts that are prefilled, and of the rows being decoded.

A row has a slot, into which its prompt is copied, and to which its new tokens are added. A slot is
filled from its first column on, so a token's column is its position.

Letters: B rows, H heads of keys and values, G queries of each, T columns, D width of a head.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from evaluation.scoring.engine.attend import dense, refuse_unsupported

WIDEN = 32
"""Widths of slots are multiples of this, so that there are few of them."""


class Prefix(NamedTuple):
    """Keys and values (H, T, D) of each layer, for the tokens from position `start` on."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    start: int

    @property
    def length(self) -> int:
        """Number of its tokens."""
        return self.keys[0].shape[1]

    @property
    def stop(self) -> int:
        """Position after its last token."""
        return self.start + self.length


class PrefillCache:
    """The cache of prompts of similar length while they are prefilled, padded on the right.

    Args:
        before: Prefixes that all prompts share, one after the other.
        positions: Positions of the input tokens, (1, T).
    """

    def __init__(
        self, before: Sequence[Prefix], windows: Sequence[int | None], positions: torch.Tensor
    ) -> None:
        self.layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._before, self._windows, self._positions = before, windows, positions
        self._masks: dict[int | None, torch.Tensor | None] = {}

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Compute one layer's attention (B, T, heads, D), and add its keys and values to `layers`."""
        self.layers.append((key, value))
        if self._before:
            shape = (key.shape[0], -1, -1, -1)
            keys = [p.keys[layer].expand(shape) for p in self._before]
            values = [p.values[layer].expand(shape) for p in self._before]
            key, value = torch.cat([*keys, key], dim=2), torch.cat([*values, value], dim=2)
        mask = self._mask(self._windows[layer])
        return dense(query, key, value, mask, scale).transpose(1, 2)

    def _mask(self, window: int | None) -> torch.Tensor | None:
        """Return a layer's mask; None if causal attention suffices, which also ignores right padding."""
        if window not in self._masks:
            at = self._positions[0]
            columns = torch.cat(
                [*(torch.arange(p.start, p.stop, device=at.device) for p in self._before), at]
            )
            mask = _visible(columns[None], at[:, None], window)
            self._masks[window] = None if window is None and not self._before else mask
        return self._masks[window]

    def prefix(self, row: int, length: int) -> Prefix:
        """Return a copy of one prompt's keys and values, without the padding after `length` tokens."""
        keys = [keys[row, :, :length].clone() for keys, _ in self.layers]
        values = [values[row, :, :length].clone() for _, values in self.layers]
        return Prefix(keys, values, self._before[-1].stop if self._before else 0)


def _visible(columns: torch.Tensor, at: torch.Tensor, window: int | None) -> torch.Tensor:
    """Return whether the token at a position attends to a column's position."""
    visible = columns <= at
    return visible if window is None else visible & (at - columns < window)


class Slots:
    """The rows being decoded, each at its place: keys and values (rows, H, T, D), and the next token."""

    def __init__(self, rows: int, like: Prefix) -> None:
        """Make empty slots, of width 0, for such keys and values."""
        self.keys, self.values = (
            [part.new_zeros(rows, part.shape[0], 0, part.shape[2]) for part in parts]
            for parts in (like.keys, like.values)
        )
        device = like.keys[0].device
        self.ids, self.places = torch.zeros(2, rows, dtype=torch.long, device=device)
        self.version = 0  # increases whenever they get other memory

    def widen(self, width: int) -> int:
        """Make the slots at least this wide, rounded up; new columns are 0, as NaN would pass any mask."""
        before, rounded = self.keys[0].shape[2], -(-width // WIDEN) * WIDEN
        if width > before:
            self.version += 1
            wider = -(-max(width, before * 5 // 4) // WIDEN) * WIDEN
            for store in (self.keys, self.values):
                for layer, narrow in enumerate(store):  # only one is in memory twice
                    store[layer] = torch.nn.functional.pad(narrow, (0, 0, 0, wider - before))
        return rounded

    def put(self, row: int, parts: Sequence[Prefix | None], token: torch.Tensor) -> None:
        """Copy the parts of a prompt to a slot, and the id of the token that follows them."""
        for part in filter(None, parts):
            for layer, (keys, values) in enumerate(zip(part.keys, part.values, strict=True)):
                self.keys[layer][row, :, part.start : part.stop] = keys
                self.values[layer][row, :, part.start : part.stop] = values
            self.places[row] = part.stop
        self.ids[row] = token

    def move(self, origin: int, target: int, length: int) -> None:
        """Copy the first columns of a slot, and its token, to another."""
        for store in (*self.keys, *self.values):
            store[target, :, :length] = store[origin, :, :length]
        for store in (self.ids, self.places):
            store[target] = store[origin]


class DecodingStep:
    """The cache of rows in one decoding step, in which each row reads one token.

    Args:
        rows: Number of rows.
        width: Columns of the slots that are read.
    """

    def __init__(self, slots: Slots, rows: int, width: int, windows: Sequence[int | None]) -> None:
        self._slots, self._width, self._windows = slots, width, windows
        self._places = slots.places[:rows]
        device, dtype = self._places.device, slots.keys[0].dtype
        self._rows, columns = (torch.arange(size, device=device) for size in (rows, width))
        self._masks = {
            window: torch.zeros(rows, width, dtype=dtype, device=device)
            .masked_fill_(~_visible(columns, self._places[:, None], window), -torch.inf)
            .view(rows, 1, 1, width)
            for window in set(windows)
        }

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Write a layer's keys and values into the slots; return its attention (B, 1, heads, D)."""
        rows = len(query)
        keys, values = self._slots.keys[layer], self._slots.values[layer]
        keys[self._rows, :, self._places] = key[:, :, 0]
        values[self._rows, :, self._places] = value[:, :, 0]
        out = scaled_dot_product_attention(
            query.reshape(rows, key.shape[1], -1, key.shape[3]),  # (B, H, G, D)
            keys[:rows, :, : self._width],
            values[:rows, :, : self._width],
            attn_mask=self._masks[self._windows[layer]],
            scale=scale,
        )
        return out.reshape(rows, 1, -1, value.shape[3])


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    scaling: float,
    memory: PrefillCache | DecodingStep,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention with the arguments of transformers; return (B, T, heads, D)."""
    refuse_unsupported(module, others)
    return memory.attend(module.layer_idx, query, key, value, scaling), None


ATTENTION = "evaluation_generation"
"""Name of this attention function in transformers."""
AttentionInterface.register(ATTENTION, _attend)
