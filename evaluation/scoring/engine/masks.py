"""Make attention masks in the form that a transformers model takes.

Token q attends to kv if `kv <= q and q < end[kv]`; in layers with a sliding window the positions must
also differ by less than the window. Positions are depths, so the window counts tokens of the sequence,
not of the row.

Letters: B rows, S tokens of a row, N blocks of a row.
"""

from collections.abc import Callable

import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import PretrainedConfig

from evaluation.errors import ScoringError

BLOCK = 128
"""Tokens of a block in flex attention's sparse masks."""

MOST_PAIRS = 1 << 28
"""Most pairs of tokens in a dense mask; a larger mask is made in pieces, in each layer anew."""

Mask = torch.Tensor | BlockMask
Masks = Mask | None | dict[str, Mask | None]
MaskMaker = Callable[[torch.Tensor, torch.Tensor, int | None], Mask]
MaskRule = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def layer_windows(config: PretrainedConfig) -> dict[str, int | None] | int | None:
    """Return the attention window of each type of layer.

    Only keys that the configuration's class declares count: Llama accepts any other key, and ignores it.

    Returns:
        The window in tokens for each type of layer, or one for all layers; None: no window.

    Raises:
        ScoringError: When a layer has neither full nor sliding attention.
    """
    window = getattr(config, "sliding_window", None)
    types = (
        set(getattr(config, "layer_types", None) or ())
        if _declares(config, "layer_types")
        else set()
    )
    unknown = types - {"full_attention", "sliding_attention"}
    if unknown:
        raise ScoringError(
            f"the model has layers of type {', '.join(sorted(unknown))}; only full and sliding "
            "attention can be scored"
        )
    if "sliding_attention" in types:
        return {"full_attention": None, "sliding_attention": window}
    return window if not types and _declares(config, "sliding_window") else None


def windows_by_layer(config: PretrainedConfig) -> list[int | None]:
    """Return the attention window of each layer in tokens, None for none; raise like `layer_windows`."""
    windows = layer_windows(config)
    if isinstance(windows, dict):
        return [windows[kind] for kind in config.layer_types]
    return [windows] * config.num_hidden_layers


def _declares(config: PretrainedConfig, key: str) -> bool:
    return hasattr(type(config), key)


def layer_masks(
    depth: torch.Tensor,
    end: torch.Tensor,
    windows: dict[str, int | None] | int | None,
    mask: MaskMaker,
    *,
    is_causal: bool,
) -> Masks:
    """Return one mask for all layers, or one per type of layer if the model has several.

    Args:
        depth: Position of each token in its sequence, (B, S).
        end: Row index from which on no token attends to it, (B, S).
        is_causal: Whether every row is one plain sequence.

    Returns:
        The masks; None for plain sequences no longer than the layer's window, since causal kernels
        need no mask.
    """

    def of(window: int | None) -> Mask | None:
        if is_causal and (window is None or depth.shape[1] <= window):
            return None
        return mask(depth, end, window)

    if isinstance(windows, dict):
        return {name: of(window) for name, window in windows.items()}
    return of(windows)


def dense_mask(depth: torch.Tensor, end: torch.Tensor, window: int | None) -> torch.Tensor:
    """Return a boolean mask, True where row q attends to column kv.

    Args:
        depth: Position of each token in its sequence, (B, S).
        end: Row index from which on no token attends to it, (B, S).
        window: Tokens that a token attends to, itself included; None: all.

    Returns:
        The mask, (B, 1, S, S); if that has more than MOST_PAIRS, the integers (B, 3, 1, S) from which
        `mask_piece` makes it.
    """
    rows, length = end.shape
    sizes = torch.full_like(depth, length if window is None else window)
    made_of = torch.stack([depth, end, sizes], dim=1)[:, :, None]
    return made_of if rows * length**2 > MOST_PAIRS else mask_piece(made_of, 0, length)


def mask_piece(made_of: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Return some rows of a mask, without the columns after the last of these rows.

    Args:
        made_of: Depth, end and window of each token, (B, 3, 1, S).
        stop: Row after the last.

    Returns:
        Booleans, (B, 1, stop - start, stop).
    """
    depth, end, sizes = made_of[:, :, 0, :stop].unbind(1)
    index = torch.arange(stop, device=end.device)
    q, kv = index[start:, None], index[None, :]
    visible = (kv <= q) & (q < end[:, None, :])  # (B, rows, stop)
    visible &= depth[:, start:, None] - depth[:, None, :] < sizes[:, start:, None]
    return visible[:, None]


def block_mask(depth: torch.Tensor, end: torch.Tensor, window: int | None) -> BlockMask:
    """Return the mask of `dense_mask` as a sparse one for flex attention.

    The extremes of each block tell which pairs of blocks are not empty, so no (S, S) tensor is
    made. A pair that a window leaves empty may be listed as partial; the rule then masks all of it.

    Args:
        depth: Position of each token in its sequence, (B, S); S must be a multiple of BLOCK.
    """
    length = end.shape[1]
    blocks = length // BLOCK
    index = torch.arange(blocks, device=end.device)
    q, kv = index[:, None], index[None, :]
    end_low, end_high = _extremes(end, blocks)
    below = kv < q
    some = (kv == q) | (below & (end_high[:, None, :] > q * BLOCK))  # (B, N, N)
    full = below & (end_low[:, None, :] >= (q + 1) * BLOCK)
    if window is not None:
        depth_low, depth_high = _extremes(depth, blocks)
        some &= depth_low[:, :, None] - depth_high[:, None, :] < window
        full &= depth_high[:, :, None] - depth_low[:, None, :] < window
    partial_count, partial_index = _listed(some & ~full)
    full_count, full_index = _listed(full)
    return BlockMask.from_kv_blocks(
        partial_count,
        partial_index,
        full_count,
        full_index,
        BLOCK_SIZE=BLOCK,
        mask_mod=_rule(depth, end, window),
        seq_lengths=(length, length),
        compute_q_blocks=False,  # only gradients need them
    )


def _extremes(values: torch.Tensor, blocks: int) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = values.view(values.shape[0], blocks, BLOCK).aminmax(dim=-1)
    return low, high


def _listed(pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Count and list (B, N, N) booleans for flex attention: counts (B, 1, N), indices (B, 1, N, N)."""
    count = pairs.sum(dim=-1, dtype=torch.int32)
    listed = pairs.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return count[:, None], listed[:, None].contiguous()


def _rule(depth: torch.Tensor, end: torch.Tensor, window: int | None) -> MaskRule:
    def visible(
        b: torch.Tensor, _h: torch.Tensor, q: torch.Tensor, kv: torch.Tensor
    ) -> torch.Tensor:
        return (kv <= q) & (q < end[b, kv])

    if window is None:
        return visible

    def in_window(
        b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, kv: torch.Tensor
    ) -> torch.Tensor:
        return visible(b, h, q, kv) & (depth[b, q] - depth[b, kv] < window)

    return in_window
