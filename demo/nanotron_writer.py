"""Writes checkpoints in the format of Nanotron's trainer, as shards that record their slices.

The demo and the tests make their checkpoints with it, from models of transformers.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import save_file

from demo.wheels import new_folder
from evaluation.checkpoints.architecture import parse_architecture
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.nanotron_classes.base import TensorSource
from evaluation.checkpoints.pretrained import load_pretrained

VERSION = "1.5"
"""Version of the checkpoint format."""

_BY_ROWS = ("token_embedding", "lm_head", "qkv_proj", "gate_up_proj")
_BY_COLUMNS = ("o_proj", "down_proj")
_ALL = "None,None,None"

_SAME_KEYS = (
    *("bos_token_id", "eos_token_id", "hidden_act", "hidden_size", "initializer_range"),
    *("intermediate_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
    *("num_key_value_heads", "pad_token_id"),
)
"""Keys that the configurations of transformers and Nanotron have in common."""


def import_hf(
    source: Path,
    target: Path,
    *,
    tp: int = 1,
    step: int = 0,
    sequence_length: int | None = None,
    tokenizer_name: str | None = None,
) -> Path:
    """Write a Llama or Qwen2 folder by `write_checkpoint`; the tokenizer is that of the folder by default."""
    checkpoint = open_checkpoint(source)
    model = load_pretrained(checkpoint, getattr(torch, checkpoint.dtype))
    return write_checkpoint(
        model.config,
        model.state_dict(),
        target,
        tp=tp,
        step=step,
        sequence_length=sequence_length,
        tokenizer_name=tokenizer_name or str(source),
    )


def write_checkpoint(
    config: Any,
    weights: Mapping[str, torch.Tensor],
    target: Path,
    *,
    tp: int,
    step: int,
    sequence_length: int | None,
    tokenizer_name: str,
) -> Path:
    """Write `target/<step>` and `target/latest.txt` from a configuration and weights of transformers.

    Args:
        tp: Tensor-parallel size. The vocabulary is padded to a multiple, as the trainer does.
        sequence_length: Tokens of a training sequence to record; None: the model's number of positions.
        tokenizer_name: Tokenizer to record; a folder is recorded by its absolute path.
    """
    model_config = _nanotron_config(config)
    arch = parse_architecture(model_config, False, None, str(target))
    model_config["vocab_size"] = math.ceil(arch.vocab_size / tp) * tp
    padded = arch.model_copy(update={"vocab_size": model_config["vocab_size"]})
    sources, padded_sources = arch.parameters(), padded.parameters()

    def tensor(name: str) -> torch.Tensor:
        whole = torch.cat([weights[part.name] for part in sources[name].targets])
        rows = padded_sources[name].shape[0] - len(whole)
        return torch.cat((whole, whole.new_zeros(rows, *whole.shape[1:])))

    length = sequence_length or arch.positions
    if Path(tokenizer_name).is_dir():  # it may be read from another working directory
        tokenizer_name = str(Path(tokenizer_name).resolve())
    dtype = str(next(iter(weights.values())).dtype).removeprefix("torch.")
    training = _training_config(model_config, dtype, tp, step, length, tokenizer_name)
    target.mkdir(parents=True, exist_ok=True)
    with new_folder(target / str(step)) as folder:
        write_parameters(folder, padded_sources, tensor, tp=tp)
        (folder / "checkpoint_metadata.json").write_text(json.dumps(_metadata(tp, step, length)))
        (folder / "model_config.json").write_text(json.dumps(model_config))
        (folder / "config.yaml").write_text(yaml.safe_dump(training))
    latest = target / "latest.txt"
    before = int(latest.read_text()) if latest.exists() else 0
    latest.write_text(str(max(before, step)))
    return target / str(step)


def write_parameters(
    folder: Path,
    expected: dict[str, TensorSource],
    tensor: Callable[[str], torch.Tensor],
    *,
    tp: int,
) -> None:
    """Write every expected parameter below `folder/model`, one at a time.

    Args:
        tp: Tensor-parallel size: number of shards of each parameter that is split.
    """
    for name, source in expected.items():
        whole = tensor(name)
        *parents, last = name.split(".")
        place = folder.joinpath("model", *parents)
        dimension = _split_dimension(name)
        if dimension is None:
            _save_shard(place / f"model_{last}.safetensors", whole, {})
            continue
        for rank in range(tp):
            shard, pairs = _shard(whole, dimension, source, rank, tp)
            label = f"pp-rank-0-of-1_tp-rank-{rank}-of-{tp}"
            metadata = {
                "version": VERSION,
                "unsharded_shape": str(tuple(whole.shape)),
                "local_global_slices_pairs": pairs,
            }
            _save_shard(place / f"model_{last}_{label}.safetensors", shard, metadata)


def _split_dimension(name: str) -> int | None:
    """Return the dimension along which tensor parallelism splits a parameter; None if it is not split."""
    layers = set(name.split("."))
    if layers.intersection(_BY_ROWS):
        return 0
    return 1 if layers.intersection(_BY_COLUMNS) else None


def _shard(
    whole: torch.Tensor, dimension: int, source: TensorSource, rank: int, tp: int
) -> tuple[torch.Tensor, str]:
    """Return a rank's shard, with a part of each tensor that is joined in the whole, and its slices pairs."""
    parts = [(target.start, target.stop) for target in source.targets]
    if dimension == 1:
        parts = [(0, whole.shape[1])]
    taken, pairs, local = [], [], 0
    for start, stop in parts:
        size, rest = divmod(stop - start, tp)
        assert not rest, f"tp {tp} does not divide {stop - start}"
        first = start + rank * size
        taken.append(whole.narrow(dimension, first, size))
        here = f"{local},{local + size},None" if len(parts) > 1 else _ALL
        pairs.append(
            f"{_slices(here, dimension, whole.ndim)}"
            f"#{_slices(f'{first},{first + size},None', dimension, whole.ndim)}"
        )
        local += size
    return torch.cat(taken, dimension), ";".join(pairs)


def _slices(split: str, dimension: int, dimensions: int) -> str:
    return "|".join(split if index == dimension else _ALL for index in range(dimensions))


def _save_shard(path: Path, tensor: torch.Tensor, metadata: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({"data": tensor.contiguous()}, path, metadata)
    # safetensors makes files that only their owner can read; take the folder's permissions.
    path.chmod(path.parent.stat().st_mode & 0o666)


def _nanotron_config(config: Any) -> dict[str, Any]:
    """Return the content of Nanotron's model_config.json for a configuration of transformers."""
    rope = config.rope_parameters
    factor = rope.get("factor") if rope["rope_type"] == "linear" else None
    common = {
        **{key: getattr(config, key) for key in _SAME_KEYS},
        "pretraining_tp": 1,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_scaling": None,
        "rope_theta": rope["rope_theta"],
        "rope_interleaved": False,
        "tie_word_embeddings": config.tie_word_embeddings,
        "use_cache": True,
        "vocab_size": config.vocab_size,
        "_attn_implementation": "flash_attention_2",
    }
    if config.model_type == "llama" and factor is None:
        return {"is_llama_config": True, "attention_bias": False, **common}
    window = getattr(config, "sliding_window", None)
    sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    return {
        "is_qwen2_config": True,
        **common,
        "attention_bias": config.model_type == "qwen2",
        "rope_seq_len_interpolation_factor": factor,
        "sliding_window_size": window if sliding else None,
        "no_rope_layer": None,
        "moe_config": None,
        "_use_qkv_packed": True,
        "_use_doc_masking": False,
    }


def _training_config(
    model_config: dict[str, Any], dtype: str, tp: int, step: int, length: int, tokenizer: str
) -> dict[str, Any]:
    """Return the content of config.yaml, as far as it is known for an imported model."""
    sizes = {"dp": 1, "pp": 1, "tp": tp}
    return {
        "general": {"project": "imported", "run": "imported", "seed": 42, "step": step},
        "model": {
            "dtype": dtype,
            "init_method": {"std": model_config["initializer_range"]},
            "make_vocab_size_divisible_by": 1,
            "model_config": model_config,
        },
        "parallelism": sizes | {"context_parallel_size": 1, "expert_parallel_size": 1},
        "tokenizer": {"tokenizer_name_or_path": tokenizer, "tokenizer_revision": None},
        "tokens": {"sequence_length": length},
    }


def _metadata(tp: int, step: int, length: int) -> dict[str, Any]:
    """Return the content of checkpoint_metadata.json for a model that has seen no tokens."""
    stage = {
        "name": "imported",
        "start_training_step": 1,
        "consumed_train_samples": 0,
        "sequence_length": length,
        "consumed_tokens_per_dataset_folder": {},
    }
    metas = {
        "last_train_step": step,
        "consumed_train_samples": 0,
        "consumed_tokens_total": 0,
        "last_stage_idx": 0,
        "data_stages": [stage],
    }
    parallel = {"version": VERSION, "tp": tp, "dp": 1, "cp": 1}
    return {**parallel, "custom_metas": None, "metas": metas}
