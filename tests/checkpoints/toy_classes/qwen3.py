"""Qwen3 as a branch of Nanotron could have it: Llama with norms of queries and keys. Not a package's file."""

from evaluation.checkpoints.config_files import Keys
from evaluation.checkpoints.mapping import TensorSource, whole_tensor
from evaluation.checkpoints.nanotron_classes import llama
from evaluation.checkpoints.nanotron_classes.base import (
    Architecture,
    NanotronClass,
    TransformersModel,
)


def _read(keys: Keys, use_mup: bool | None) -> Architecture:
    del use_mup  # this class ignores muP; one that has it hands it on, as Llama's does
    return Architecture(nanotron_class=NANOTRON_CLASS, **llama.read_sizes(keys))


def _transformers_model(arch: Architecture) -> TransformersModel:
    config = {"rms_norm_eps": arch.norm_eps, "head_dim": arch.head_dim}
    return TransformersModel(class_name="Qwen3ForCausalLM", config=config)


def _layer(arch: Architecture, layer: int) -> dict[str, TensorSource]:
    ours, theirs = f"model.decoder.{layer}.pp_block.attn", f"model.layers.{layer}.self_attn"
    norms = {
        f"{ours}.{name}.weight": whole_tensor(f"{theirs}.{name}.weight", (arch.head_dim,))
        for name in ("q_norm", "k_norm")
    }
    return llama.dense_layer(arch, layer) | norms


NANOTRON_CLASS = NanotronClass(
    name="Qwen3",
    marker="is_qwen3_config",
    keys=llama.SIZE_KEYS,
    ignored_keys=frozenset({"norm_kernel"}),
    read=_read,
    transformers_model=_transformers_model,
    parameters=lambda arch: llama.parameters(arch, _layer),
    heeds_documents=False,
)
