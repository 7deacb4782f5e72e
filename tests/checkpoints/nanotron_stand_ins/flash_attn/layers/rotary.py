"""Rotary embedding of queries (B, T, heads, D) and of packed keys and values (B, T, 2, heads, D)."""

from typing import Any

import torch


def apply_rotary_emb(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False, **_: Any
) -> torch.Tensor:
    """Turn pairs of x (B, T, heads, D): neighbours if interleaved, otherwise halves."""
    cos, sin = cos[None, : x.shape[1], None], sin[None, : x.shape[1], None]
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    turned = (first * cos - second * sin, first * sin + second * cos)
    return torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)


class RotaryEmbedding(torch.nn.Module):
    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        interleaved: bool = False,
        scale_base: float | None = None,
        pos_idx_in_fp32: bool = True,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.dim, self.base, self.interleaved = dim, base, interleaved
        self.scale, self.pos_idx_in_fp32 = None, True
        self._seq_len_cached, self._cos_cached, self._sin_cached = 0, None, None
        self.register_buffer("inv_freq", self._compute_inv_freq(), persistent=False)

    def _compute_inv_freq(self, device: Any = None) -> torch.Tensor:
        return 1.0 / self.base ** (torch.arange(0, self.dim, 2, dtype=torch.float32) / self.dim)

    def _update_cos_sin_cache(self, seqlen: int, device: Any = None, dtype: Any = None) -> None:
        angles = torch.outer(torch.arange(seqlen, dtype=torch.float32), self._compute_inv_freq())
        self._cos_cached, self._sin_cached = angles.cos().to(dtype), angles.sin().to(dtype)

    def forward(
        self, q: torch.Tensor, kv: torch.Tensor, seqlen_offset: int = 0, max_seqlen: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert seqlen_offset == 0
        self._update_cos_sin_cache(q.shape[1], device=q.device, dtype=q.dtype)
        cos, sin = self._cos_cached, self._sin_cached
        key = apply_rotary_emb(kv[:, :, 0], cos, sin, self.interleaved)
        query = apply_rotary_emb(q, cos, sin, self.interleaved)
        return query, torch.stack([key, kv[:, :, 1]], dim=2)
