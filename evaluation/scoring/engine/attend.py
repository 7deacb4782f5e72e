"""Define this project's attention function, which transformers calls by its name.

For its own kinds of attention, transformers makes a mask in every pass, and looks for packed sequences,
for which the host waits for the GPU. For this function it makes none: each layer gets the mask of
`layer_masks` for its type, which alone decides what a token attends to.

Letters: B rows, H heads (of queries; keys and values may have fewer), S tokens, D width of a head.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.nn.attention import SDPBackend
from torch.nn.attention.flex_attention import BlockMask, FlexKernelOptions, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.masks import MOST_PAIRS, Mask, mask_piece

NAME = "evaluation_scoring"

UNPLANNED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""All kernels but cuDNN's, which are preferred on an H100 and take up to a second for each new shape."""

FLOAT32_KERNEL: FlexKernelOptions = {"BLOCK_M": 64, "BLOCK_N": 32, "num_stages": 2, "num_warps": 8}
"""Tiles of flex attention in float32. At a width of 128 they use 74 KB of shared memory, and spill
nothing on an A100 and 440 bytes a thread on an H100 (`benchmarks.kernels`; Triton 3.7).

The default tiles for an A100 spill 14 KB a thread at a width of 128, and do not fit at 96.
"""


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Mask | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention with a mask; None: causal attention.

    Args:
        query: Queries, (B, H, S, D).
        key: Keys, (B, heads of keys, S, D).
        attention_mask: The mask of `layer_masks` for the layer's type.
        scaling: Factor of the products; None: one over the square root of D.
        **others: Other arguments of transformers; those that would change scores are refused.

    Returns:
        The output, (B, S, H, D), and None in place of weights.

    Raises:
        ScoringError: When the model needs attention with a feature that is not supported.
    """
    refuse_unsupported(module, others)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if isinstance(attention_mask, BlockMask):
        out = _sparse(query, key, value, attention_mask, scale)
    else:
        out = dense(query, key, value, attention_mask, scale)
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, attend)


def refuse_unsupported(module: torch.nn.Module, others: Mapping[str, Any]) -> None:
    """Raise ScoringError if an argument of transformers asks for a feature that our attention lacks."""
    for name in ("softcap", "s_aux", "position_bias"):
        if others.get(name) is not None:
            raise ScoringError(
                f"{type(module).__name__} computes attention with `{name}`, which is not supported; "
                "score the model by a `command` of your own"
            )


@contextlib.contextmanager
def attention_by(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Have a model use a registered attention function while the block lasts."""
    before = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def is_on_gpu(part: torch.Tensor) -> bool:
    """Return whether a tensor is on a GPU; a benchmark without one replaces this."""
    return part.is_cuda


def _sparse(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: BlockMask, scale: float
) -> torch.Tensor:
    is_wide = is_on_gpu(query) and query.dtype == torch.float32  # where default tiles may not fit
    output: torch.Tensor = flex_attention(
        query,
        key,
        value,
        block_mask=mask,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
        kernel_options=FLOAT32_KERNEL if is_wide else None,
    )
    return output


def dense(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:
    """Compute attention (B, H, S, D), causal or with a mask of `dense_mask`, by a fused kernel.

    Args:
        mask: Booleans, or the integers from which `mask_piece` makes them; None: causal.
    """
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and not _shares_heads(query, mask):
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        groups = 1
    if mask is not None and mask.dtype != torch.bool:
        return _in_pieces(query, key, value, mask, scale)
    return scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=mask is None and query.shape[2] > 1,
        scale=scale,
        enable_gqa=groups > 1,
    )


def _in_pieces(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, made_of: torch.Tensor, scale: float
) -> torch.Tensor:
    """Compute attention for some queries at a time, whose mask has at most MOST_PAIRS pairs."""
    rows, _, length, _ = query.shape
    step = max(1, MOST_PAIRS // (rows * length))
    bounds = [(start, min(start + step, length)) for start in range(0, length, step)]
    pieces = [
        scaled_dot_product_attention(
            query[:, :, start:stop],
            key[:, :, :stop],
            value[:, :, :stop],
            attn_mask=mask_piece(made_of, start, stop),
            scale=scale,
        )
        for start, stop in bounds
    ]
    return torch.cat(pieces, dim=2)


def _shares_heads(query: torch.Tensor, mask: torch.Tensor | None) -> bool:
    """Return whether a fused kernel accepts fewer heads of keys than of queries.

    On a GPU only flash attention does, in narrow dtypes and up to a width of 256; in all other cases
    SDPA would fall back to a kernel that writes all S x S scores.
    """
    if not is_on_gpu(query):
        return mask is None
    return mask is None and query.dtype != torch.float32 and query.shape[-1] <= 256
