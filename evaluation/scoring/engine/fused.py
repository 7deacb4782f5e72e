"""Run decoder layers like Llama's with fewer kernels, since launching them limits a decoding step.

Projections of the same input are one product, a norm is one kernel and a rotation three: 16 launches for
each layer and token, in place of 36. A layer runs so only if it then computes what its class does.

Letters: B rows, T tokens, D width of a head.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.functional import linear, rms_norm
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.self_check import NARROW, REFUSALS, TOLERANCE

PARTS = {
    *("self_attn", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp.act_fn"),
    *("input_layernorm", "post_attention_layernorm"),
}
"""All modules of a layer like Llama's."""

_fused: "WeakKeyDictionary[PreTrainedModel, list[FusedLayer]]" = WeakKeyDictionary()


class Memory(Protocol):
    """Keys and values that a layer's attention adds to."""

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Return attention (B, T, heads, D) of queries, keys and values (B, heads, T, D)."""


@contextlib.contextmanager
def fused_layers(model: PreTrainedModel) -> Iterator[None]:
    """Run a model's layers fused while the block lasts, where that gives the same.

    Args:
        model: A model whose attention function takes a `memory`. The joined weights of its layers
            become parts of one tensor, and remain so.
    """
    if model not in _fused:
        _fused[model] = list(_matching(model))
    for fused in _fused[model]:
        fused.layer.forward = fused
    try:
        yield
    finally:
        for fused in _fused[model]:
            del fused.layer.forward


def _matching(model: PreTrainedModel) -> "Iterator[FusedLayer]":
    for layer in getattr(model.base_model, "layers", ()):
        if {name for name, _ in layer.named_modules() if name} == PARTS:
            with contextlib.suppress(*REFUSALS, RuntimeError, ScoringError):  # it stays as it is
                fused = FusedLayer(layer)
                if _is_right(fused, model):
                    yield fused


class FusedLayer:
    """The forward pass of a layer that consists of PARTS."""

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.layer = layer
        self._width = attention.head_dim
        self._has_rope = getattr(attention, "use_rope", True)
        self._qkv = _joined([attention.q_proj, attention.k_proj, attention.v_proj])
        self._gated = _joined([mlp.gate_proj, mlp.up_proj])
        self._queries, self._keys = (
            part.out_features // self._width for part in (attention.q_proj, attention.k_proj)
        )

    def __call__(
        self,
        hidden: torch.Tensor,
        *,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        memory: Memory,
        **_: Any,
    ) -> torch.Tensor:
        """Return the layer's output, like its class."""
        layer, attention, mlp = self.layer, self.layer.self_attn, self.layer.mlp
        heads = linear(_normed(layer.input_layernorm, hidden), *self._qkv)
        heads = heads.view(*hidden.shape[:2], -1, self._width).transpose(1, 2)
        both, value = torch.split(heads, [self._queries + self._keys, self._keys], dim=1)
        if self._has_rope:
            both = _rotated(both, *position_embeddings)
        query, key = torch.split(both, [self._queries, self._keys], dim=1)
        attended = memory.attend(attention.layer_idx, query, key, value, attention.scaling)
        hidden = hidden + attention.o_proj(attended.flatten(2))
        gate, up = linear(_normed(layer.post_attention_layernorm, hidden), *self._gated).chunk(
            2, -1
        )
        output: torch.Tensor = hidden + mlp.down_proj(mlp.act_fn(gate) * up)
        return output


def _normed(norm: Any, hidden: torch.Tensor) -> torch.Tensor:
    return rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _rotated(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate heads (B, heads, T, D); a plain sum would need five operations for queries and for keys."""
    rotated = heads * cos[:, None]
    halves = (part.chunk(2, dim=-1) for part in (heads, sin[:, None], rotated))
    (left, right), (sin_left, sin_right), (rotated_left, rotated_right) = halves
    rotated_left.addcmul_(right, sin_left, value=-1)
    rotated_right.addcmul_(left, sin_right)
    return rotated


def _joined(layers: Sequence[nn.Linear]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the weight and the bias of several linear layers, whose own become views of them."""
    weight = _whole([layer.weight for layer in layers])
    biases = [layer.bias for layer in layers if layer.bias is not None]
    if biases and len(biases) < len(layers):
        raise ValueError("only some of these layers have a bias")
    return weight, _whole(biases) if biases else None


@torch.inference_mode(False)  # compiled layers must not meet weights of another kind than before
def _whole(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    whole = torch.cat([part.detach() for part in parts])
    views = torch.split(whole, [len(part) for part in parts])
    for part, view in zip(parts, views, strict=True):
        part.data = view
    return whole


class _Nowhere:
    """A memory whose result depends on all of a layer's queries, keys and values."""

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        groups = query.shape[1] // key.shape[1]
        mixed = query * scale * key.repeat_interleave(groups, dim=1).cos()
        return (mixed + value.repeat_interleave(groups, dim=1)).transpose(1, 2)


def _is_right(fused: FusedLayer, model: PreTrainedModel) -> bool:
    """Compare with the class's own layer on random input, rotated as the model does it."""
    weight, random = fused.layer.self_attn.q_proj.weight, torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 3, model.config.hidden_size, generator=random).to(weight)
    places = torch.tensor([[0, 7, 40], [3, 8, 200]], device=model.device)
    cos, sin = model.base_model.rotary_emb(hidden.to(model.device), position_ids=places)
    turned = (cos.to(weight), sin.to(weight))
    ours = fused(hidden, position_embeddings=turned, memory=_Nowhere())
    own = fused.layer(hidden, position_embeddings=turned, memory=_Nowhere())
    error = torch.linalg.vector_norm((ours - own).double()) / torch.linalg.vector_norm(own.double())
    return bool(error <= TOLERANCE.get(weight.dtype, 3 * NARROW))  # both round
