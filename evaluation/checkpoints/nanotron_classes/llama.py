"""Nanotron's Llama.

Shapes of parameters, with H query heads and K key-value heads of size d, hidden size h, intermediate size m:

    qkv_proj.weight     [(H + 2K) d, h]   rows of q, then k, then v
    gate_up_proj.weight [2m, h]           rows of gate, then up
"""

import math
from typing import ClassVar

from pydantic import Field

from evaluation.checkpoints.nanotron_classes.base import (
    TRAINING_KEYS,
    Count,
    Flag,
    NanotronModel,
    Number,
    Target,
    TensorSource,
    TransformersModel,
    whole_tensor,
)


class Llama(NanotronModel):
    """Nanotron's LlamaConfig."""

    heeds_mup: ClassVar[bool] = True
    ignored: ClassVar[frozenset[str]] = TRAINING_KEYS | {"attention_bias"}

    intermediate_size: Count
    kv_heads: Count = Field(default_factory=lambda read: read["heads"], alias="num_key_value_heads")
    activation: str = Field("silu", alias="hidden_act")
    norm_eps: Number = Field(1e-6, alias="rms_norm_eps")
    tied_embeddings: Flag = Field(False, alias="tie_word_embeddings")
    rope_interleaved: Flag = True  # as checkpoints that are older than this key were computed

    @property
    def transformers_model(self) -> TransformersModel:
        """The model of transformers that computes the same."""
        config = {"rms_norm_eps": self.norm_eps, "attention_bias": False, "mlp_bias": False}
        return TransformersModel(class_name="LlamaForCausalLM", config=config)

    def parameters(self) -> dict[str, TensorSource]:
        """Return the embedding, the last norm, the head, and the parameters of each layer."""
        hidden, vocabulary = self.hidden_size, (self.vocab_size, self.hidden_size)
        embedding = "model.token_position_embeddings.pp_block.token_embedding.weight"
        final = "model.final_layer_norm.pp_block.weight"
        sources = {
            embedding: whole_tensor("model.embed_tokens.weight", vocabulary),
            final: whole_tensor("model.norm.weight", (hidden,)),
        }
        if not self.tied_embeddings:
            sources["model.lm_head.pp_block.weight"] = whole_tensor("lm_head.weight", vocabulary)
        for layer in range(self.layers):
            ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
            for norm in ("input_layernorm.weight", "post_attention_layernorm.weight"):
                sources[f"{ours}.{norm}"] = whole_tensor(f"{theirs}.{norm}", (hidden,))
            sources |= self._attention(f"{ours}.attn", f"{theirs}.self_attn")
            sources |= self.feed_forward(layer, f"{ours}.mlp", f"{theirs}.mlp")
        return sources

    def _attention(self, ours: str, theirs: str) -> dict[str, TensorSource]:
        """Return the projections of an attention; a class that heeds `attention_bias` has biases, too."""
        hidden, kv_rows = self.hidden_size, self.kv_heads * self.head_dim
        rows = hidden + 2 * kv_rows
        pairs = self.head_dim if self.rope_interleaved else None
        divisor = math.sqrt(self.head_dim) if self.mup else 1.0

        def split(kind: str) -> tuple[Target, ...]:
            return (
                Target(f"{theirs}.q_proj.{kind}", 0, hidden, pairs, divisor),
                Target(f"{theirs}.k_proj.{kind}", hidden, hidden + kv_rows, pairs),
                Target(f"{theirs}.v_proj.{kind}", hidden + kv_rows, rows),
            )

        sources = {
            f"{ours}.qkv_proj.weight": TensorSource((rows, hidden), split("weight")),
            f"{ours}.o_proj.weight": whole_tensor(f"{theirs}.o_proj.weight", (hidden, hidden)),
        }
        if getattr(self, "attention_bias", False):
            sources[f"{ours}.qkv_proj.bias"] = TensorSource((rows,), split("bias"))
        return sources

    def feed_forward(self, layer: int, ours: str, theirs: str) -> dict[str, TensorSource]:
        """Return the parameters of a layer's feed-forward block."""
        del layer
        return gated(ours, theirs, self.hidden_size, self.intermediate_size)


def gated(ours: str, theirs: str, hidden: int, size: int) -> dict[str, TensorSource]:
    """Return the projections of a gated feed-forward block."""
    gate_up = (
        Target(f"{theirs}.gate_proj.weight", 0, size),
        Target(f"{theirs}.up_proj.weight", size, 2 * size),
    )
    return {
        f"{ours}.gate_up_proj.weight": TensorSource((2 * size, hidden), gate_up),
        f"{ours}.down_proj.weight": whole_tensor(f"{theirs}.down_proj.weight", (hidden, size)),
    }
