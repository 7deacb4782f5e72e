"""Nanotron's Starcoder2 with grouped queries, whose embedding is tied.

The rows of `query_key_value` alternate: for each key-value head its queries, its key and its value.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation.checkpoints.config_files import Unrepresentable
from evaluation.checkpoints.nanotron_classes.base import (
    TRAINING_KEYS,
    Count,
    NanotronModel,
    Number,
    Target,
    TensorSource,
    TransformersModel,
    whole_tensor,
)

_TRAINING = frozenset(
    "attention_softmax_in_fp32 attn_pdrop embd_pdrop resid_pdrop scale_attention_softmax_in_fp32".split()
)


class Starcoder2(NanotronModel):
    """Nanotron's Starcoder2Config, which today's Nanotron cannot build."""

    ignored: ClassVar[frozenset[str]] = TRAINING_KEYS | _TRAINING

    intermediate_size: Count = Field(default_factory=lambda read: 4 * read["hidden_size"])
    kv_heads: Count = Field(alias="num_kv_heads")
    activation: str = Field("gelu_pytorch_tanh", alias="activation_function")
    norm_eps: Number = Field(1e-5, alias="layer_norm_epsilon")
    tied_embeddings: Literal[True] = Field(True, alias="tie_word_embeddings")
    rope_interleaved: Literal[False] = False
    grouped_query: Literal[True] = True
    multi_query: Literal[False] = False
    use_rotary_embeddings: Literal[True] = True
    use_position_embeddings: Literal[False] = False
    scale_attn_weights: Literal[True] = True
    sliding_window_size: Count | None = None
    global_attn_layers: Any = None

    @model_validator(mode="after")
    def _check_window(self) -> "Starcoder2":
        if self.sliding_window_size is not None and self.global_attn_layers:
            raise Unrepresentable("`sliding_window_size` together with `global_attn_layers`")
        return self

    @property
    def transformers_model(self) -> TransformersModel:
        """The model of transformers that computes the same."""
        config = {"norm_epsilon": self.norm_eps, "sliding_window": self.sliding_window_size}
        return TransformersModel(class_name="Starcoder2ForCausalLM", config=config)

    def parameters(self) -> dict[str, TensorSource]:
        """Return every parameter by Nanotron's name, with its whole shape and the targets of its rows."""
        hidden, size, q_rows = self.hidden_size, self.intermediate_size, self.heads * self.head_dim
        sources = {
            "model.token_embeddings.pp_block.token_embedding.weight": whole_tensor(
                "model.embed_tokens.weight", (self.vocab_size, hidden)
            ),
            **_linear("model.final_layer_norm.pp_block", "model.norm", (hidden,)),
        }
        for layer in range(self.layers):
            ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
            sources |= _linear(f"{ours}.ln_1", f"{theirs}.input_layernorm", (hidden,))
            sources |= _linear(f"{ours}.ln_2", f"{theirs}.post_attention_layernorm", (hidden,))
            sources |= _linear(f"{ours}.attn.dense", f"{theirs}.self_attn.o_proj", (hidden, q_rows))
            sources |= _linear(f"{ours}.ff.c_fc", f"{theirs}.mlp.c_fc", (size, hidden))
            sources |= _linear(f"{ours}.ff.c_proj", f"{theirs}.mlp.c_proj", (hidden, size))
            for kind, columns in (("weight", (hidden,)), ("bias", ())):
                sources[f"{ours}.attn.query_key_value.{kind}"] = _grouped(
                    theirs, kind, self, columns
                )
        return sources


def _linear(ours: str, theirs: str, shape: tuple[int, ...]) -> dict[str, TensorSource]:
    return {
        f"{ours}.weight": whole_tensor(f"{theirs}.weight", shape),
        f"{ours}.bias": whole_tensor(f"{theirs}.bias", shape[:1]),
    }


def _grouped(theirs: str, kind: str, arch: NanotronModel, columns: tuple[int, ...]) -> TensorSource:
    size, queries = arch.head_dim, arch.heads // arch.kv_heads * arch.head_dim
    targets = []
    for head in range(arch.kv_heads):
        row = head * (queries + 2 * size)
        for part, rows in (("q", queries), ("k", size), ("v", size)):
            name = f"{theirs}.self_attn.{part}_proj.{kind}"
            targets.append(Target(name, row, row + rows, offset=head * rows))
            row += rows
    return TensorSource((arch.kv_heads * (queries + 2 * size), *columns), tuple(targets))
