"""What a Nanotron configuration computes, and which of transformers' classes computes the same.

The configuration's marker (`is_llama_config`, `is_qwen2_config`) names Nanotron's class, not the
architecture; the class in transformers is chosen by features:

    experts                                   Qwen2MoeForCausalLM
    layers without RoPE                       SmolLM3ForCausalLM
    sliding window, or q/k/v biases           Qwen2ForCausalLM
    everything else, and all of Nanotron's Llama   LlamaForCausalLM
"""

from dataclasses import dataclass
from typing import Any

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.keys import Keys
from evaluation.checkpoints.known_keys import check_known
from evaluation.errors import CheckpointError, UnsupportedCheckpoint

_MOST_LAYERS = 10_000
"""A number beyond it is a mistake, which must not cost memory."""


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
    """Everything about a Nanotron model that shapes its weights or its forward pass."""

    llama: bool
    """Nanotron's LlamaForTraining, which ignores documents; otherwise its Qwen2ForTraining."""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    activation: str
    norm_eps: float
    tied: bool
    positions: int
    rope_theta: float
    rope_interleaved: bool
    rope_factor: float | None
    """Positions are divided by it."""
    qkv_bias: bool
    window: int | None
    """Tokens that a token of a roped layer sees, itself included."""
    nope_every: int | None
    """Layers n, 2n, … (counted from 1) have no RoPE."""
    mup: bool
    """Attention is scaled by 1/head_dim in place of 1/sqrt(head_dim)."""
    experts: Experts | None

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.heads

    @property
    def roped(self) -> tuple[bool, ...]:
        """For each layer, whether it has RoPE."""
        return tuple(
            self.nope_every is None or (layer + 1) % self.nope_every != 0
            for layer in range(self.layers)
        )

    @property
    def model_class(self) -> str:
        """Name of the class in transformers that computes the same."""
        if self.experts is not None:
            return "Qwen2MoeForCausalLM"
        if self.nope_every is not None:
            return "SmolLM3ForCausalLM"
        if self.window is not None or self.qkv_bias:
            return "Qwen2ForCausalLM"
        return "LlamaForCausalLM"

    def model_config(self) -> dict[str, Any]:
        """Arguments of that class's configuration.

        BOS, EOS and padding stay unset: a Nanotron configuration holds what its author typed, often
        not the tokenizer's ids, and a wrong EOS would end generations early.
        """
        rope: dict[str, Any] = {"rope_type": "default", "rope_theta": self.rope_theta}
        if self.rope_factor is not None:
            rope |= {"rope_type": "linear", "factor": self.rope_factor}
        common = {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "hidden_act": self.activation,
            "rms_norm_eps": self.norm_eps,
            "tie_word_embeddings": self.tied,
            "max_position_embeddings": self.positions,
            "rope_parameters": rope,
            "bos_token_id": None,
            "eos_token_id": None,
            "pad_token_id": None,
        }
        return common | self._specific()

    def _specific(self) -> dict[str, Any]:
        if self.experts is not None:
            return {
                "qkv_bias": self.qkv_bias,
                "num_experts": self.experts.number,
                "num_experts_per_tok": self.experts.per_token,
                "moe_intermediate_size": self.experts.intermediate_size,
                "shared_expert_intermediate_size": self.experts.shared_size or 1,
                "norm_topk_prob": False,
                "decoder_sparse_step": 1,
                "mlp_only_layers": sorted(set(range(self.layers)) - set(self.experts.layers)),
                "use_sliding_window": False,
            }
        windows = {
            "use_sliding_window": self.window is not None,
            "sliding_window": self.window,
            "layer_types": [
                "sliding_attention" if self.window and roped else "full_attention"
                for roped in self.roped
            ],
        }
        if self.nope_every is not None:
            # Explicit layer_types: SmolLM3's own default puts the window on the other layers.
            no_rope = [int(roped) for roped in self.roped]
            return {"no_rope_layers": no_rope, "attention_bias": self.qkv_bias, **windows}
        if self.model_class == "Qwen2ForCausalLM":
            return windows
        return {"attention_bias": False, "mlp_bias": False}


def read_architecture(checkpoint: Checkpoint) -> Architecture:
    """Reads a Nanotron checkpoint's configuration; raises as `parse_architecture`."""
    own = checkpoint.path / "model_config.json"
    where = own if own.is_file() else checkpoint.path / "config.yaml"
    return parse_architecture(
        checkpoint.model_config, checkpoint.use_mup, checkpoint.sequence_length, str(where)
    )


def parse_architecture(
    config: dict[str, Any], use_mup: bool | None, sequence_length: int | None, where: str
) -> Architecture:
    """Reads Nanotron's model configuration, which does not say whether the model uses muP.

    Raises UnsupportedCheckpoint for what no class represents, CheckpointError for a missing or
    impossible value, naming the file `where` it was read.
    """
    keys = Keys(config, where)
    llama = _is_llama(keys)
    check_known(keys, llama=llama)
    heads = keys.count("num_attention_heads")
    hidden = keys.count("hidden_size")
    found = Architecture(
        llama=llama,
        vocab_size=keys.count("vocab_size"),
        hidden_size=hidden,
        intermediate_size=keys.count("intermediate_size"),
        layers=keys.count("num_hidden_layers", most=_MOST_LAYERS),
        heads=heads,
        kv_heads=keys.count("num_key_value_heads", heads),
        activation=str(keys.config.get("hidden_act", "silu")),
        norm_eps=keys.number("rms_norm_eps", 1e-6),
        tied=keys.flag("tie_word_embeddings", False),
        positions=max(keys.count("max_position_embeddings", 1), sequence_length or 1),
        # Both keys are younger than the format; before them, this is what was computed.
        rope_theta=keys.number("rope_theta", 10_000.0),
        rope_interleaved=keys.flag("rope_interleaved", True),
        rope_factor=None if llama else keys.optional_number("rope_seq_len_interpolation_factor"),
        qkv_bias=not llama and keys.flag("attention_bias", False),
        window=None if llama else keys.optional_count("sliding_window_size"),
        nope_every=None if llama else keys.optional_count("no_rope_layer"),
        mup=llama and _uses_mup(use_mup, where),
        experts=None if llama else _read_experts(keys),
    )
    _check_possible(found, keys.where)
    return found


def _is_llama(keys: Keys) -> bool:
    marked = [str(key) for key, value in keys.config.items() if value is True]
    models = [key for key in marked if key.startswith("is_") and key.endswith("_config")]
    if models in (["is_llama_config"], ["is_qwen2_config"]):
        return models == ["is_llama_config"]
    named = ", ".join(models)[:100] or "no `is_…_config` key"
    if "is_starcoder2_config" in models:
        named = "Starcoder2"
    raise UnsupportedCheckpoint(
        f"{keys.where}: {named} cannot be represented; Nanotron's Llama and Qwen2 can"
    )


def _uses_mup(use_mup: bool | None, where: str) -> bool:
    if use_mup is None:
        raise CheckpointError(
            f"{where}: config.yaml is missing beside it, which alone says whether the model uses muP; "
            "copy it from the training run, or say so: `assume: {use_mup: false}` of the stage, "
            "`--no-use-mup` of a command"
        )
    return use_mup


def _read_experts(keys: Keys) -> Experts | None:
    config = keys.given("moe_config")
    if config is None:
        return None
    if not isinstance(config, dict):
        raise keys.wrong("moe_config", "a table")
    inner = Keys(config, keys.where, "moe_config.")
    total = keys.count("num_hidden_layers", most=_MOST_LAYERS)
    layers = config.get("layers", [-1])
    if layers == [-1]:
        layers = list(range(total))
    if not isinstance(layers, list) or any(
        type(layer) is not int or not 0 <= layer < total for layer in layers
    ):
        raise inner.wrong("layers", f"layers from 0 to {total - 1}")
    shared = inner.flag("enable_shared_expert", False)
    return Experts(
        layers=tuple(sorted(set(layers))),
        number=inner.count("num_experts"),
        per_token=inner.count("top_k"),
        intermediate_size=inner.count("moe_intermediate_size"),
        shared_size=inner.count("shared_expert_intermediate_size") if shared else None,
    )


def _check_possible(found: Architecture, where: str) -> None:
    if found.experts is not None and found.nope_every is not None:
        raise UnsupportedCheckpoint(
            f"{where}: experts (`moe_config`) together with layers without RoPE (`no_rope_layer`) "
            "cannot be represented by any class of transformers; score it by a `command` of your own"
        )
    if found.experts is not None and found.window is not None:
        raise UnsupportedCheckpoint(
            f"{where}: experts (`moe_config`) together with a sliding window "
            "(`sliding_window_size`) cannot be represented by any class of transformers; score it by a `command` of your own"
        )
    if found.experts is not None and found.experts.per_token > found.experts.number:
        raise CheckpointError(
            f"{where}: `moe_config.top_k` is larger than `moe_config.num_experts`; correct one of them"
        )
    if found.hidden_size % found.heads or found.head_dim % 2:
        raise CheckpointError(
            f"{where}: `hidden_size` {found.hidden_size} does not give {found.heads} heads of an "
            "even size; correct the configuration"
        )
    if found.heads % found.kv_heads:
        raise CheckpointError(
            f"{where}: `num_attention_heads` {found.heads} is no multiple of "
            f"`num_key_value_heads` {found.kv_heads}; correct one of them"
        )
