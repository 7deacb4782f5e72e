"""What a Nanotron model class consists of, and the model that its configuration describes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.mapping import TensorSource

MOST_LAYERS = 10_000
"""A larger number is a mistake, and must not cost memory."""


@dataclass(frozen=True, kw_only=True)
class NanotronClass:
    """One of Nanotron's model classes. Functions get an `Architecture` that `read` has made."""

    name: str
    marker: str
    """The key that is true in its configurations, such as `is_llama_config`."""
    keys: frozenset[str]
    """Keys that change what a model computes."""
    ignored_keys: frozenset[str] = frozenset()
    """Keys that change nothing, besides those that all classes ignore (`model_keys.py`)."""
    inner_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For a key that is a table of its own: the keys in it that change what is computed."""
    read: Callable[[Keys, bool | None], "Architecture"]
    """Read the configuration. The flag says whether the model uses muP; None if that is not recorded."""
    transformers_model: Callable[["Architecture"], "TransformersModel"]
    """Return the model of transformers that computes the same."""
    parameters: Callable[["Architecture"], dict[str, TensorSource]]
    """Return every parameter by Nanotron's name, with its whole shape and the targets of its rows."""
    heeds_documents: bool
    """Whether Nanotron's own code separates the documents of a row."""
    config_class: str | None = None
    """Nanotron's class of the configuration; None if today's Nanotron cannot build the model."""


@dataclass(frozen=True, kw_only=True)
class TransformersModel:
    """A model of transformers, without weights."""

    class_name: str
    config: dict[str, Any]
    """Arguments of its configuration class, besides `common_config`."""
    zeros: frozenset[str] = frozenset()
    """Parameters that Nanotron's model lacks; zeros make them ineffective."""


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Mixture of experts of some layers."""

    layers: tuple[int, ...]
    number: int
    per_token: int
    intermediate_size: int
    shared_size: int | None
    """Width of the shared expert; None if there is none."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Everything about a Nanotron model that shapes its weights or its forward pass.

    A class with further features has a subclass of this in its own file.
    """

    nanotron_class: NanotronClass
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    activation: str
    norm_eps: float
    tied_embeddings: bool
    positions: int
    rope_theta: float
    rope_interleaved: bool
    rope_factor: float | None = None
    """Positions are divided by it."""
    qkv_bias: bool = False
    sliding_window: int | None = None
    """Tokens that a token attends to in a layer with RoPE, itself included."""
    no_rope_layer: int | None = None
    """Layers n, 2n, … (counted from 1) have no RoPE."""
    mup: bool = False
    """Attention is scaled by 1/head_dim in place of 1/sqrt(head_dim)."""
    experts: Experts | None = None

    @property
    def head_dim(self) -> int:
        """Size of an attention head."""
        return self.hidden_size // self.heads

    @property
    def roped(self) -> tuple[bool, ...]:
        """For each layer, whether it has RoPE."""
        return tuple(
            self.no_rope_layer is None or (layer + 1) % self.no_rope_layer != 0
            for layer in range(self.layers)
        )

    @property
    def transformers_model(self) -> TransformersModel:
        """The model of transformers that computes the same."""
        return self.nanotron_class.transformers_model(self)

    def parameters(self) -> dict[str, TensorSource]:
        """Return every parameter by Nanotron's name, with its whole shape and the targets of its rows."""
        return self.nanotron_class.parameters(self)


def common_config(arch: Architecture) -> dict[str, Any]:
    """Return the arguments that all configuration classes of transformers have.

    BOS, EOS and padding stay unset: those of a Nanotron configuration were typed by hand and are often
    not the tokenizer's, and a wrong EOS would end generations early.
    """
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": arch.rope_theta}
    if arch.rope_factor is not None:
        rope |= {"rope_type": "linear", "factor": arch.rope_factor}
    return {
        "vocab_size": arch.vocab_size,
        "hidden_size": arch.hidden_size,
        "intermediate_size": arch.intermediate_size,
        "num_hidden_layers": arch.layers,
        "num_attention_heads": arch.heads,
        "num_key_value_heads": arch.kv_heads,
        "hidden_act": arch.activation,
        "tie_word_embeddings": arch.tied_embeddings,
        "max_position_embeddings": arch.positions,
        "rope_parameters": rope,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
