"""Attention of packed sequences, by a product over each."""

from itertools import pairwise
from typing import Any

import torch


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    **_: Any,
) -> torch.Tensor:
    """Attention (tokens, heads, D), each sequence alone; a window counts tokens to the left."""
    assert torch.equal(cu_seqlens_q, cu_seqlens_k)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    parts = []
    bounds = cu_seqlens_q.tolist()
    for start, stop in pairwise(bounds):
        at = torch.arange(stop - start)
        apart = at[:, None] - at[None, :]
        hidden = (apart < 0) if causal else torch.zeros_like(apart, dtype=torch.bool)
        if window_size[0] >= 0:
            hidden = hidden | (apart > window_size[0])
        scores = torch.einsum("qhd,khd->hqk", q[start:stop], k[start:stop]) * scale
        shares = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        parts.append(torch.einsum("hqk,khd->qhd", shares, v[start:stop]))
    return torch.cat(parts)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, *given: Any, **told: Any
) -> torch.Tensor:
    return flash_attn_varlen_func(q, kv[:, 0], kv[:, 1], *given, **told)


def flash_attn_func(*_: Any, **__: Any) -> torch.Tensor:
    raise NotImplementedError


flash_attn_with_kvcache = _flash_attn_varlen_forward = _flash_attn_varlen_backward = flash_attn_func
_flash_attn_forward = _flash_attn_backward = flash_attn_func
