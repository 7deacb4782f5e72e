"""Make attention masks in the forms that a transformers model takes.

Token q of a row attends to kv if `kv <= q and q < end[kv]`; in layers with a sliding window the positions
must also differ by less than the window. Positions are depths, so the window counts tokens of the
sequence, not of the row.

Letters: B rows, S tokens of a row, N blocks of a row.
"""

from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import PretrainedConfig

from evaluation.errors import ScoringError

BLOCK = 128
"""Tokens of a block in flex attention's sparse masks."""

Mask = torch.Tensor | BlockMask | None
Windows = dict[str, int | None] | int | None
"""The attention window in tokens of each type of layer, or one for all; None: no window."""


def dense_mask(depth: torch.Tensor, end: torch.Tensor, window: int | None) -> torch.Tensor:
    """Return a boolean mask (B, 1, S, S), True where a row's token attends to a column's."""
    index = torch.arange(end.shape[1], device=end.device)
    visible = (index[None, :] <= index[:, None]) & (index[:, None] < end[:, None, :])
    if window is not None:
        visible &= depth[:, :, None] - depth[:, None, :] < window
    return visible[:, None]


def block_mask(depth: torch.Tensor, end: torch.Tensor, window: int | None) -> BlockMask:
    """Return the same mask for flex attention; S must be a multiple of BLOCK.

    The extremes of each block tell which pairs of blocks are not empty, so no (S, S) tensor is made. A
    pair that a window leaves empty may be listed as partial; the rule then masks all of it.
    """
    length = end.shape[1]
    index = torch.arange(length // BLOCK, device=end.device)
    q, kv = index[:, None], index[None, :]
    low, high = end.view(len(end), -1, BLOCK).aminmax(dim=-1)
    below = kv < q
    some = (kv == q) | (below & (high[:, None, :] > q * BLOCK))  # (B, N, N)
    full = below & (low[:, None, :] >= (q + 1) * BLOCK)
    if window is not None:
        low, high = depth.view(len(end), -1, BLOCK).aminmax(dim=-1)
        some &= low[:, :, None] - high[:, None, :] < window
        full &= high[:, :, None] - low[:, None, :] < window

    def rule(b: torch.Tensor, _h: torch.Tensor, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        visible = (kv <= q) & (q < end[b, kv])
        return visible if window is None else visible & (depth[b, q] - depth[b, kv] < window)

    return BlockMask.from_kv_blocks(
        *_listed(some & ~full),
        *_listed(full),
        BLOCK_SIZE=BLOCK,
        mask_mod=rule,
        seq_lengths=(length, length),
        compute_q_blocks=False,  # only gradients need them
    )


def _listed(pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Count and list (B, N, N) booleans for flex attention: counts (B, 1, N), indices (B, 1, N, N)."""
    count = pairs.sum(dim=-1, dtype=torch.int32)
    listed = pairs.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return count[:, None], listed[:, None].contiguous()


def declared(config: PretrainedConfig, key: str) -> Any:
    """Return a key that the configuration's class declares: Llama accepts any other, and ignores it."""
    return getattr(config, key, None) if hasattr(type(config), key) else None


def layer_windows(config: PretrainedConfig) -> Windows:
    """Return the window of each type of layer; refuse layers and positions that rows cannot be packed for."""
    rope = getattr(config, "rope_parameters", None) or {}
    if (kind := rope.get("rope_type")) in ("dynamic", "longrope"):
        raise ScoringError(
            f"the model's rotary embedding ({kind}) depends on the longest row of a batch, so that scores "
            "would depend on the other rows"
        )
    types = set(declared(config, "layer_types") or ())
    sliding = {"sliding_attention"} if hasattr(config, "sliding_window") else set()
    if unknown := types - {"full_attention"} - sliding:
        raise ScoringError(
            f"the model has layers of type {', '.join(sorted(unknown))}; only full and sliding "
            "attention can be scored"
        )
    if "sliding_attention" in types:
        return {"full_attention": None, "sliding_attention": config.sliding_window}
    return None if types else declared(config, "sliding_window")
