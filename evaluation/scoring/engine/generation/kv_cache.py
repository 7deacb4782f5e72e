"""Key-value cache of prefixes that several rows share, and of each row's own tokens.

A row attends to a chain of shared prefixes, and then to its slot, to which its new tokens are added. A
slot is filled from its first column on, so there is no padding on the left. The columns of attention
are [shared prefixes | slot]; each column has a position for each row, or NOWHERE.

Letters: B rows, H heads of keys and values, G queries of each, T columns, D width of a head.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from evaluation.scoring.engine.attend import dense, refuse_unsupported
from evaluation.scoring.engine.head import gives_float32

NOWHERE = 1 << 40
"""Position of a column that is empty for a row."""

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

    def to(self, device: torch.device) -> Self:
        """Return this cache for layers on another device."""
        if device == self._positions.device:
            return self
        moved = copy.copy(self)
        moved._positions, moved._masks = self._positions.to(device), {}
        return moved

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


@dataclass
class Slots:
    """Keys and values (rows, H, T, D) of the rows being decoded, which are widened when necessary."""

    rows: int
    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)
    version: int = 0
    """Increases whenever they get other memory."""

    def open(self, like: Prefix) -> None:
        """Make empty slots, of width 0, for such keys and values."""
        self.keys, self.values = (
            [part.new_zeros(self.rows, part.shape[0], 0, part.shape[2]) for part in parts]
            for parts in (like.keys, like.values)
        )

    def widen(self, width: int) -> None:
        """Make the slots at least this wide; new columns are 0, as NaN would pass any mask."""
        before = self.keys[0].shape[2]
        if width <= before:
            return
        self.version += 1
        width = -(-max(width, before * 5 // 4) // WIDEN) * WIDEN
        for store in (self.keys, self.values):
            for layer, narrow in enumerate(store):  # only one layer at a time is in memory twice
                store[layer] = torch.nn.functional.pad(narrow, (0, 0, 0, width - before))

    def put(self, row: int, column: int, prefix: Prefix) -> None:
        """Copy keys and values of a part of a prompt to a slot, from a column on."""
        end = column + prefix.length
        for layer, (keys, values) in enumerate(zip(prefix.keys, prefix.values, strict=True)):
            self.keys[layer][row, :, column:end] = keys
            self.values[layer][row, :, column:end] = values

    def move(self, origin: int, target: int, length: int) -> None:
        """Copy the first columns of a slot to another."""
        for store in (*self.keys, *self.values):
            store[target, :, :length] = store[origin, :, :length]


class Share(NamedTuple):
    """A prefix, the rows that share it, and its first column."""

    prefix: Prefix
    rows: torch.Tensor | slice
    column: int

    def _to(self, device: torch.device) -> "Share":
        """Return the share with its rows as an index on a device; prefixes are on their layers' devices."""
        return self if isinstance(self.rows, slice) else self._replace(rows=self.rows.to(device))


class DecodingStep:
    """The cache of rows in one decoding step, in which each row reads one token.

    Args:
        shares: Prefixes of the rows, before their slots.
        columns: Position of each column for each row, (B, T); NOWHERE: empty.
        at: Position of each row's token, (B,).
        places: Column of the slot that each row writes, (B,).
    """

    def __init__(
        self,
        slots: Slots,
        shares: Sequence[Share],
        columns: torch.Tensor,
        at: torch.Tensor,
        places: torch.Tensor,
        windows: Sequence[int | None],
    ) -> None:
        self._slots, self._shares, self._windows = slots, shares, windows
        self._places, self._rows = places, torch.arange(len(at), device=at.device)
        self._width = columns.shape[1]
        self._begin = max([0, *(share.column + share.prefix.length for share in shares)])
        dtype = torch.float32 if shares else slots.keys[0].dtype
        self._masks = {
            window: torch.zeros(columns.shape, dtype=dtype, device=at.device)
            .masked_fill_(~_visible(columns, at[:, None], window), -torch.inf)
            .view(len(at), 1, 1, -1)
            for window in set(windows)
        }

    def to(self, device: torch.device) -> Self:
        """Return this step for layers on another device, where their slots and prefixes are."""
        if device == self._rows.device:
            return self
        moved = copy.copy(self)
        moved._rows, moved._places = self._rows.to(device), self._places.to(device)
        moved._shares = [share._to(device) for share in self._shares]
        moved._masks = {window: mask.to(device) for window, mask in self._masks.items()}
        return moved

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Write a layer's keys and values into the slots; return its attention (B, 1, heads, D)."""
        rows, begin, width = len(query), self._begin, self._width - self._begin
        keys, values = self._slots.keys[layer], self._slots.values[layer]
        keys[self._rows, :, self._places] = key[:, :, 0]
        values[self._rows, :, self._places] = value[:, :, 0]
        heads, depth = key.shape[1], value.shape[3]
        query = query.reshape(rows, heads, -1, key.shape[3])  # (B, H, G, D)
        keys, values = keys[:rows, :, :width], values[:rows, :, :width]
        mask = self._masks[self._windows[layer]]
        if not self._shares:
            out = scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scale)
            return out.reshape(rows, 1, -1, depth)
        query = query * scale
        scores = _product(query, keys.transpose(2, 3))
        scores = torch.nn.functional.pad(scores, (begin, 0)) if begin else scores
        for share in self._shares:
            end = share.column + share.prefix.length
            found = _folded(query[share.rows], share.prefix.keys[layer].transpose(1, 2))
            scores[share.rows, :, :, share.column : end] = found
        shares = scores.add_(mask).softmax(dim=-1)
        out = _product(shares[..., begin:].to(value.dtype), values)
        for share in self._shares:
            part = shares[share.rows, :, :, share.column : share.column + share.prefix.length]
            out[share.rows] += _folded(part.to(value.dtype), share.prefix.values[layer])
        return out.to(value.dtype).view(rows, 1, -1, depth)


def _folded(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply (B, H, G, x) by (H, x, y) with one product per head; return (B, H, G, y) float32."""
    rows, heads, queries, _ = left.shape
    flat = left.transpose(0, 1).reshape(heads, rows * queries, -1)
    return _product(flat, right).view(heads, rows, queries, -1).transpose(0, 1)


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply matrices with a float32 result, also from narrower dtypes."""
    if gives_float32(left):
        shape = (*left.shape[:-1], right.shape[-1])
        left, right = left.flatten(0, -3), right.flatten(0, -3)
        return torch.bmm(left, right, out_dtype=torch.float32).view(shape)
    return torch.matmul(left.float(), right.float())


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
