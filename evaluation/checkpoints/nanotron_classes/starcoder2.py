"""Nanotron's Starcoder2 with grouped queries, whose embedding is tied.

The rows of `query_key_value` alternate: for each key-value head its queries, its key and its value.
"""

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.mapping import Target, TensorSource, whole_tensor
from evaluation.checkpoints.nanotron_classes.base import (
    MOST_LAYERS,
    Architecture,
    NanotronClass,
    TransformersModel,
)
from evaluation.errors import UnsupportedCheckpoint

_KEYS = frozenset(
    "activation_function global_attn_layers grouped_query hidden_size intermediate_size layer_norm_epsilon "
    "multi_query num_attention_heads num_hidden_layers num_kv_heads rope_theta scale_attn_weights "
    "sliding_window_size use_position_embeddings use_rotary_embeddings vocab_size".split()
)
_TRAINING_KEYS = frozenset(
    "attention_softmax_in_fp32 attn_pdrop embd_pdrop resid_pdrop scale_attention_softmax_in_fp32".split()
)
_REQUIRED = {
    "grouped_query": True,
    "multi_query": False,
    "use_rotary_embeddings": True,
    "use_position_embeddings": False,
    "scale_attn_weights": True,
}


def _read(keys: Keys, use_mup: bool | None) -> Architecture:
    del use_mup  # Nanotron's Starcoder2 ignores muP
    for key, value in _REQUIRED.items():
        if keys.flag(key, value) is not value:
            raise UnsupportedCheckpoint(
                f"{keys.where}: `{key}` is {str(not value).lower()}, for which no checkpoint of Nanotron "
                "could be compared with its own logits; score it by a `command` of your own"
            )
    window = keys.optional_count("sliding_window_size")
    if window is not None and keys.config.get("global_attn_layers"):
        raise UnsupportedCheckpoint(
            f"{keys.where}: `sliding_window_size` with `global_attn_layers` cannot be represented by "
            "transformers' Starcoder2; score it by a `command` of your own"
        )
    hidden = keys.count("hidden_size")
    return Architecture(
        nanotron_class=NANOTRON_CLASS,
        vocab_size=keys.count("vocab_size"),
        hidden_size=hidden,
        intermediate_size=keys.count("intermediate_size", 4 * hidden),
        layers=keys.count("num_hidden_layers", most=MOST_LAYERS),
        heads=keys.count("num_attention_heads"),
        kv_heads=keys.count("num_kv_heads"),
        activation=str(keys.config.get("activation_function", "gelu_pytorch_tanh")),
        norm_eps=keys.number("layer_norm_epsilon", 1e-5),
        tied_embeddings=True,
        positions=keys.count("max_position_embeddings", 1),
        rope_theta=keys.number("rope_theta", 10_000.0),
        rope_interleaved=False,
        qkv_bias=True,
        sliding_window=window,
    )


def _transformers_model(arch: Architecture) -> TransformersModel:
    config = {"norm_epsilon": arch.norm_eps, "sliding_window": arch.sliding_window}
    return TransformersModel(class_name="Starcoder2ForCausalLM", config=config)


def _parameters(arch: Architecture) -> dict[str, TensorSource]:
    hidden, size, q_rows = arch.hidden_size, arch.intermediate_size, arch.heads * arch.head_dim
    sources = {
        "model.token_embeddings.pp_block.token_embedding.weight": whole_tensor(
            "model.embed_tokens.weight", (arch.vocab_size, hidden)
        ),
        **_linear("model.final_layer_norm.pp_block", "model.norm", (hidden,)),
    }
    for layer in range(arch.layers):
        ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
        sources |= _linear(f"{ours}.ln_1", f"{theirs}.input_layernorm", (hidden,))
        sources |= _linear(f"{ours}.ln_2", f"{theirs}.post_attention_layernorm", (hidden,))
        sources |= _linear(f"{ours}.attn.dense", f"{theirs}.self_attn.o_proj", (hidden, q_rows))
        sources |= _linear(f"{ours}.ff.c_fc", f"{theirs}.mlp.c_fc", (size, hidden))
        sources |= _linear(f"{ours}.ff.c_proj", f"{theirs}.mlp.c_proj", (hidden, size))
        for kind, columns in (("weight", (hidden,)), ("bias", ())):
            sources[f"{ours}.attn.query_key_value.{kind}"] = _grouped(theirs, kind, arch, columns)
    return sources


def _linear(ours: str, theirs: str, shape: tuple[int, ...]) -> dict[str, TensorSource]:
    return {
        f"{ours}.weight": whole_tensor(f"{theirs}.weight", shape),
        f"{ours}.bias": whole_tensor(f"{theirs}.bias", shape[:1]),
    }


def _grouped(theirs: str, kind: str, arch: Architecture, columns: tuple[int, ...]) -> TensorSource:
    size, queries = arch.head_dim, arch.heads // arch.kv_heads * arch.head_dim
    targets = []
    for head in range(arch.kv_heads):
        row = head * (queries + 2 * size)
        for part, rows in (("q", queries), ("k", size), ("v", size)):
            name = f"{theirs}.self_attn.{part}_proj.{kind}"
            targets.append(Target(name, row, row + rows, offset=head * rows))
            row += rows
    return TensorSource((arch.kv_heads * (queries + 2 * size), *columns), tuple(targets))


NANOTRON_CLASS = NanotronClass(
    name="Starcoder2",
    marker="is_starcoder2_config",
    keys=_KEYS,
    ignored_keys=_TRAINING_KEYS,
    read=_read,
    transformers_model=_transformers_model,
    parameters=_parameters,
    heeds_documents=False,
)
