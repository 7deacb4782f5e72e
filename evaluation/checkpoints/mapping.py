"""Map Nanotron's models to transformers: the class that computes the same, and each parameter's place.

The configuration's marker (`is_llama_config`, `is_qwen2_config`) names Nanotron's class, not the
architecture. The features of a model decide its class in transformers:

    experts                                        Qwen2MoeForCausalLM
    layers without RoPE                            SmolLM3ForCausalLM
    sliding window, or q/k/v biases                Qwen2ForCausalLM
    everything else, and all of Nanotron's Llama   LlamaForCausalLM
    Nanotron's Starcoder2                          Starcoder2ForCausalLM

Shapes of parameters, with H query heads and K key-value heads of size d, hidden size h, intermediate size m:

    qkv_proj.weight     [(H + 2K) d, h]   rows of q, then k, then v
    gate_up_proj.weight [2m, h]           rows of gate, then up
    merged_gate_up_proj [E, h, 2m]        x @ W, so transposed; gate first
    merged_down_proj    [E, m, h]         also transposed

Interleaved RoPE rotates the rows 2j and 2j + 1 of a head of q or k together; transformers rotates
j together with j + d/2.
"""

import math
from dataclasses import dataclass

from evaluation.checkpoints.architecture import Architecture, Experts


@dataclass(frozen=True)
class Target:
    """A parameter of a transformers model and the rows of a Nanotron tensor that it takes."""

    name: str
    start: int
    stop: int
    interleaved_head: int | None = None
    """Head size, if rows are reordered from adjacent pairs to half-split; otherwise None."""
    divisor: float = 1.0
    transposed: bool = False
    """Whether the last two dimensions are swapped."""
    offset: int = 0
    """The parameter's row that takes the first of these rows."""


@dataclass(frozen=True)
class Source:
    """A Nanotron tensor's whole shape and the targets of its rows, which together take all of them."""

    shape: tuple[int, ...]
    targets: tuple[Target, ...]


def model_class(arch: Architecture) -> str:
    """Return the name of the class in transformers that computes the same.

    Returns:
        A name such as `LlamaForCausalLM`, from the table at the top of this module.
    """
    if arch.family == "Starcoder2":
        return "Starcoder2ForCausalLM"
    if arch.experts is not None:
        return "Qwen2MoeForCausalLM"
    if arch.no_rope_layer is not None:
        return "SmolLM3ForCausalLM"
    if arch.sliding_window is not None or arch.qkv_bias:
        return "Qwen2ForCausalLM"
    return "LlamaForCausalLM"


def expected_parameters(arch: Architecture) -> dict[str, Source]:
    """Return every parameter that a checkpoint of this architecture has.

    Returns:
        By Nanotron's name, each parameter's whole shape and the targets of its rows.
    """
    if arch.family == "Starcoder2":
        return _starcoder2(arch)
    vocabulary = (arch.vocab_size, arch.hidden_size)
    found = {
        "model.token_position_embeddings.pp_block.token_embedding.weight": _one(
            "model.embed_tokens.weight", vocabulary
        ),
        "model.final_layer_norm.pp_block.weight": _one("model.norm.weight", (arch.hidden_size,)),
    }
    if not arch.tied_embeddings:
        found["model.lm_head.pp_block.weight"] = _one("lm_head.weight", vocabulary)
    for layer in range(arch.layers):
        ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
        found |= _norms(ours, theirs, arch.hidden_size)
        found |= _attention(f"{ours}.attn", f"{theirs}.self_attn", arch)
        if arch.experts is not None and layer in arch.experts.layers:
            found |= _experts(f"{ours}.mlp", f"{theirs}.mlp", arch.hidden_size, arch.experts)
        else:
            found |= _mlp(f"{ours}.mlp", f"{theirs}.mlp", arch.hidden_size, arch.intermediate_size)
    return found


def _one(name: str, shape: tuple[int, ...], *, transposed: bool = False) -> Source:
    return Source(shape, (Target(name, 0, shape[0], transposed=transposed),))


def _norms(ours: str, theirs: str, hidden: int) -> dict[str, Source]:
    names = ("input_layernorm.weight", "post_attention_layernorm.weight")
    return {f"{ours}.{name}": _one(f"{theirs}.{name}", (hidden,)) for name in names}


def _attention(ours: str, theirs: str, arch: Architecture) -> dict[str, Source]:
    q_rows, kv_rows = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    rows = q_rows + 2 * kv_rows
    pairs = arch.head_dim if arch.rope_interleaved else None
    divisor = math.sqrt(arch.head_dim) if arch.mup else 1.0

    def split(kind: str) -> tuple[Target, ...]:
        return (
            Target(f"{theirs}.q_proj.{kind}", 0, q_rows, pairs, divisor),
            Target(f"{theirs}.k_proj.{kind}", q_rows, q_rows + kv_rows, pairs),
            Target(f"{theirs}.v_proj.{kind}", q_rows + kv_rows, rows),
        )

    found = {
        f"{ours}.qkv_proj.weight": Source((rows, arch.hidden_size), split("weight")),
        f"{ours}.o_proj.weight": _one(f"{theirs}.o_proj.weight", (arch.hidden_size, q_rows)),
    }
    if arch.qkv_bias:
        found[f"{ours}.qkv_proj.bias"] = Source((rows,), split("bias"))
    return found


def _mlp(ours: str, theirs: str, hidden: int, size: int) -> dict[str, Source]:
    gate_up = (
        Target(f"{theirs}.gate_proj.weight", 0, size),
        Target(f"{theirs}.up_proj.weight", size, 2 * size),
    )
    return {
        f"{ours}.gate_up_proj.weight": Source((2 * size, hidden), gate_up),
        f"{ours}.down_proj.weight": _one(f"{theirs}.down_proj.weight", (hidden, size)),
    }


def _experts(ours: str, theirs: str, hidden: int, experts: Experts) -> dict[str, Source]:
    number, size = experts.number, experts.intermediate_size
    found = {
        f"{ours}.router.weight": _one(f"{theirs}.gate.weight", (number, hidden)),
        f"{ours}.experts.merged_gate_up_proj": _one(
            f"{theirs}.experts.gate_up_proj", (number, hidden, 2 * size), transposed=True
        ),
        f"{ours}.experts.merged_down_proj": _one(
            f"{theirs}.experts.down_proj", (number, size, hidden), transposed=True
        ),
    }
    if experts.shared_size is not None:
        shared = "shared_expert"
        found |= _mlp(f"{ours}.{shared}", f"{theirs}.{shared}", hidden, experts.shared_size)
        gate = f"{shared}_gate.weight"
        found[f"{ours}.{gate}"] = _one(f"{theirs}.{gate}", (1, hidden))
    return found


def _starcoder2(arch: Architecture) -> dict[str, Source]:
    hidden, size, q_rows = arch.hidden_size, arch.intermediate_size, arch.heads * arch.head_dim
    found = {
        "model.token_embeddings.pp_block.token_embedding.weight": _one(
            "model.embed_tokens.weight", (arch.vocab_size, hidden)
        ),
        **_linear("model.final_layer_norm.pp_block", "model.norm", (hidden,)),
    }
    for layer in range(arch.layers):
        ours, theirs = f"model.decoder.{layer}.pp_block", f"model.layers.{layer}"
        found |= _linear(f"{ours}.ln_1", f"{theirs}.input_layernorm", (hidden,))
        found |= _linear(f"{ours}.ln_2", f"{theirs}.post_attention_layernorm", (hidden,))
        found |= _linear(f"{ours}.attn.dense", f"{theirs}.self_attn.o_proj", (hidden, q_rows))
        found |= _linear(f"{ours}.ff.c_fc", f"{theirs}.mlp.c_fc", (size, hidden))
        found |= _linear(f"{ours}.ff.c_proj", f"{theirs}.mlp.c_proj", (hidden, size))
        for kind, columns in (("weight", (hidden,)), ("bias", ())):
            found[f"{ours}.attn.query_key_value.{kind}"] = _grouped(theirs, kind, arch, columns)
    return found


def _linear(ours: str, theirs: str, shape: tuple[int, ...]) -> dict[str, Source]:
    shapes = {"weight": shape, "bias": shape[:1]}
    return {f"{ours}.{kind}": _one(f"{theirs}.{kind}", own) for kind, own in shapes.items()}


def _grouped(theirs: str, kind: str, arch: Architecture, columns: tuple[int, ...]) -> Source:
    """Return the targets of rows that alternate: for each key-value head its queries, key and value."""
    size, queries = arch.head_dim, arch.heads // arch.kv_heads * arch.head_dim
    targets = []
    for head in range(arch.kv_heads):
        row = head * (queries + 2 * size)
        for part, rows in (("q", queries), ("k", size), ("v", size)):
            name = f"{theirs}.self_attn.{part}_proj.{kind}"
            targets.append(Target(name, row, row + rows, offset=head * rows))
            row += rows
    return Source((arch.kv_heads * (queries + 2 * size), *columns), tuple(targets))
