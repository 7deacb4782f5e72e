"""Norms, computed in float32."""

from typing import Any

import torch


def layer_norm_fn(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
    is_rms_norm: bool = False,
    residual: None = None,
    **_: Any,
) -> torch.Tensor:
    assert residual is None
    wide = x.float()
    if not is_rms_norm:
        return torch.nn.functional.layer_norm(wide, x.shape[-1:], weight, bias, eps).to(x.dtype)
    return (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight).to(x.dtype)
