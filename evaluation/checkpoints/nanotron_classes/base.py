"""What a Nanotron model class is: its configuration by Nanotron's keys, and the model that computes the same.

A branch of Nanotron may add keys, and may switch off by one that is false what Nanotron always does. So a
key that a class does not have is refused, whatever its value.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a positive number is expected")
    return value


Count = Annotated[int, Field(strict=True, gt=0, lt=2**31)]
Layers = Annotated[int, Field(strict=True, gt=0, le=10_000)]
"""Number of layers; a larger one is a mistake, and must not cost memory."""
Flag = Annotated[bool, Field(strict=True)]
Number = Annotated[float, BeforeValidator(_no_flag), Field(gt=0, allow_inf_nan=False)]
"""YAML reads `1e-05` as text, so text that is a number counts as one."""

TRAINING_KEYS = frozenset(
    "architectures bos_token_id dtype eos_token_id flex_attention_mask initializer_range log_attn_probs "
    "model_type pad_token_id pretraining_tp ring_attn_heads_k_stride rope_scaling torch_dtype "
    "transformers_version use_cache z_loss_coefficient z_loss_enabled _attn_implementation "
    "_fused_rms_norm _fused_rotary_emb _is_using_mup _use_doc_masking _use_qkv_packed".split()
)
"""Keys that do not change what a model computes; `rope_scaling` is logged when a model is loaded."""

_NULL_IS_DEFAULT = {"num_key_value_heads", "intermediate_size", "max_position_embeddings"}


@dataclass(frozen=True)
class Target:
    """A parameter of a transformers model and the rows of a Nanotron tensor that it takes."""

    name: str
    start: int
    stop: int
    interleaved_head: int | None = None
    """Head size, if rows are reordered from adjacent pairs to half-split; otherwise None.

    Interleaved RoPE rotates the rows 2j and 2j + 1 of a head of q or k together; transformers rotates
    j together with j + d/2.
    """
    divisor: float = 1.0
    transposed: bool = False
    """Whether the last two dimensions are swapped."""
    offset: int = 0
    """The parameter's row that takes the first of these rows."""


@dataclass(frozen=True)
class TensorSource:
    """A Nanotron tensor's whole shape and the targets of its rows, which together take all of them."""

    shape: tuple[int, ...]
    targets: tuple[Target, ...]


def whole_tensor(name: str, shape: tuple[int, ...], *, transposed: bool = False) -> TensorSource:
    """Return a tensor that one parameter takes as a whole."""
    return TensorSource(shape, (Target(name, 0, shape[0], transposed=transposed),))


@dataclass(frozen=True, kw_only=True)
class TransformersModel:
    """A model of transformers, without weights."""

    class_name: str
    config: Mapping[str, Any]
    """Arguments of its configuration class, besides those of `NanotronModel.common_config`."""
    zeros: frozenset[str] = field(default_factory=frozenset)
    """Parameters that Nanotron's model lacks; zeros make them ineffective."""


class NanotronModel(BaseModel):
    """The configuration of a model: everything that shapes its weights or its forward pass."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    heeds_documents: ClassVar[bool] = False
    """Whether Nanotron's own code separates the documents of a row."""
    heeds_mup: ClassVar[bool] = False
    """Whether `use_mup` of config.yaml changes what it computes."""
    ignored: ClassVar[frozenset[str]] = TRAINING_KEYS

    vocab_size: Count
    hidden_size: Count
    layers: Layers = Field(alias="num_hidden_layers")
    heads: Count = Field(alias="num_attention_heads")
    positions: Count = Field(1, alias="max_position_embeddings")
    rope_theta: Number = 10_000.0  # checkpoints that are older than this key were computed so
    _mup: bool = PrivateAttr(False)

    # Each class has these under a key of its own.
    intermediate_size: Count
    kv_heads: Count
    activation: str
    norm_eps: Number
    tied_embeddings: bool
    rope_interleaved: bool

    @model_validator(mode="before")
    @classmethod
    def _without_ignored(cls, table: dict[Any, Any]) -> dict[Any, Any]:
        def is_ignored(key: str) -> bool:
            is_marker = key.startswith("is_") and key.endswith("_config")
            return (
                key in cls.ignored or is_marker or (key in _NULL_IS_DEFAULT and table[key] is None)
            )

        return {k: v for k, v in table.items() if not (isinstance(k, str) and is_ignored(k))}

    @model_validator(mode="after")
    def _check_heads(self) -> "NanotronModel":
        if self.hidden_size % self.heads or self.head_dim % 2 or self.heads % self.kv_heads:
            raise ValueError(
                f"`hidden_size` {self.hidden_size} cannot be split into {self.heads} heads of an even size, "
                f"or these are no multiple of `num_key_value_heads` {self.kv_heads}"
            )
        return self

    @property
    def mup(self) -> bool:
        """Whether attention is scaled by 1/head_dim in place of 1/sqrt(head_dim)."""
        return self._mup

    @property
    def head_dim(self) -> int:
        """Size of an attention head."""
        return self.hidden_size // self.heads

    @property
    @abstractmethod
    def transformers_model(self) -> TransformersModel:
        """The model of transformers that computes the same."""

    @abstractmethod
    def parameters(self) -> dict[str, TensorSource]:
        """Return every parameter by Nanotron's name, with its whole shape and the targets of its rows."""

    def common_config(self) -> dict[str, Any]:
        """Return the arguments that all configuration classes of transformers have.

        BOS, EOS and padding stay unset: those of a Nanotron configuration were typed by hand.
        """
        rope: dict[str, Any] = {"rope_type": "default", "rope_theta": self.rope_theta}
        if (factor := getattr(self, "rope_seq_len_interpolation_factor", None)) is not None:
            rope |= {"rope_type": "linear", "factor": factor}
        return {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "hidden_act": self.activation,
            "tie_word_embeddings": self.tied_embeddings,
            "max_position_embeddings": self.positions,
            "rope_parameters": rope,
            **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
        }
