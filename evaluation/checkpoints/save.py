"""Files as Nanotron's trainer writes them: shards with their slices, and the configuration files."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import save_file

from evaluation.checkpoints.mapping import Source
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.files import temporary_path

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
"""Keys of transformers' configurations that Nanotron's have, too."""


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes `target` if all goes well.

    Args:
        target: Folder to be made, with those above it.

    Yields:
        The temporary folder; it is removed if the block fails.

    Raises:
        CheckpointError: `target` is there already, or cannot be written.
    """
    if target.exists() or target.is_symlink():
        raise CheckpointError(f"{target}: is there already; remove it or choose another")
    temporary = temporary_path(target)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        os.rename(temporary, target)
    except OSError as error:
        raise CheckpointError(
            f"{target}: cannot be written ({error.strerror}); free disk space or choose another target"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_parameters(
    folder: Path,
    expected: dict[str, Source],
    tensor: Callable[[str], torch.Tensor],
    *,
    tp: int,
    pp_rank: Callable[[str], tuple[int, int]] = lambda _: (0, 1),
) -> None:
    """Write every expected parameter below `folder/model`, one at a time.

    Args:
        folder: The checkpoint's folder.
        expected: Parameters by Nanotron's name, as `expected_parameters` gives them.
        tensor: Gives a whole parameter by name.
        tp: Tensor-parallel size: shards per parameter that is split.
        pp_rank: Gives a parameter's pipeline rank, and the number of ranks, by name.

    Raises:
        CheckpointError: The disk is full or cannot be written.
    """
    for name, source in expected.items():
        whole = tensor(name)
        *parents, last = name.split(".")
        place = folder.joinpath("model", *parents)
        dimension = _split_dimension(name)
        if dimension is None:
            save_shard(place / f"model_{last}.safetensors", whole, {})
            continue
        for rank in range(tp):
            shard, pairs = _shard(whole, dimension, source, rank, tp)
            p, stages = pp_rank(name)
            label = f"pp-rank-{p}-of-{stages}_tp-rank-{rank}-of-{tp}"
            metadata = {
                "version": VERSION,
                "unsharded_shape": str(tuple(whole.shape)),
                "local_global_slices_pairs": pairs,
            }
            save_shard(place / f"model_{last}_{label}.safetensors", shard, metadata)


def _split_dimension(name: str) -> int | None:
    """Return the dimension along which tensor parallelism splits a parameter; None if it does not."""
    layers = set(name.split("."))
    if layers.intersection(_BY_ROWS):
        return 0
    return 1 if layers.intersection(_BY_COLUMNS) else None


def _shard(
    whole: torch.Tensor, dimension: int, source: Source, rank: int, tp: int
) -> tuple[torch.Tensor, str]:
    """Return a rank's shard and its slices pairs: a part of each of the tensors that are joined in one."""
    parts = [(target.start, target.stop) for target in source.targets]
    if dimension == 1:
        parts = [(0, whole.shape[1])]
    taken, pairs, local = [], [], 0
    for start, stop in parts:
        size = (stop - start) // tp
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


def save_shard(path: Path, tensor: torch.Tensor, metadata: dict[str, str]) -> None:
    """Write a weight file.

    Args:
        path: The file; folders above it are made.
        tensor: Its one tensor, which is stored as `data`.
        metadata: Metadata of the header: format version, whole shape, slices.

    Raises:
        CheckpointError: The disk is full or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"data": tensor.contiguous()}, path, metadata)
        # safetensors makes files that only their owner reads; the folder follows the umask.
        path.chmod(path.parent.stat().st_mode & 0o666)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error}); free disk space or choose another target"
        ) from None


def nanotron_model_config(config: Any, folder: Path) -> dict[str, Any]:
    """Return model_config.json for a configuration of transformers.

    Args:
        config: Configuration object of a Llama or Qwen2 model.
        folder: The Hugging Face folder, for messages.

    Returns:
        Keys and values as Nanotron's trainer writes them.

    Raises:
        UnsupportedCheckpoint: Nanotron cannot compute the model.
    """
    _refuse_uncomputable(config, folder)
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


def _refuse_uncomputable(config: Any, folder: Path) -> None:
    rope = config.rope_parameters
    refused = {
        "rope_type": rope["rope_type"] not in ("default", "linear"),
        "head_dim": (getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        * config.num_attention_heads != config.hidden_size,
        "attention_bias": config.model_type == "llama" and config.attention_bias,
        "mlp_bias": getattr(config, "mlp_bias", False),
        "layer_types": len(set(getattr(config, "layer_types", None) or ())) > 1,
    }  # fmt: skip
    for key, is_refused in refused.items():
        if is_refused:
            value = rope[key] if key in rope else getattr(config, key)
            raise UnsupportedCheckpoint(
                f"{folder / 'config.json'}: {key} {value!r} has no counterpart in Nanotron; evaluate the folder as it is"
            )


def write_configs(
    folder: Path,
    model_config: dict[str, Any],
    *,
    dtype: str,
    tp: int,
    step: int,
    sequence_length: int,
    tokenizer_name: str,
) -> None:
    """Write the configuration files, with what they can record of an imported model.

    Args:
        folder: The checkpoint's folder.
        model_config: Content of model_config.json.
        dtype: The weights' dtype, by torch's name.
        tp: Tensor-parallel size.
        step: The checkpoint's step.
        sequence_length: Training length in tokens to record.
        tokenizer_name: Tokenizer to record.
    """
    sizes = {"dp": 1, "pp": 1, "tp": tp}
    training = {
        "general": {"project": "imported", "run": "imported", "seed": 42, "step": step},
        "model": {
            "dtype": dtype,
            "init_method": {"std": model_config["initializer_range"]},
            "make_vocab_size_divisible_by": 1,
            "model_config": model_config,
        },
        "parallelism": sizes | {"context_parallel_size": 1, "expert_parallel_size": 1},
        "tokenizer": {"tokenizer_name_or_path": tokenizer_name, "tokenizer_revision": None},
        "tokens": {"sequence_length": sequence_length},
    }
    stage = {
        "name": "imported",
        "start_training_step": 1,
        "consumed_train_samples": 0,
        "sequence_length": sequence_length,
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
    metadata = {**parallel, "custom_metas": None, "metas": metas}
    (folder / "checkpoint_metadata.json").write_text(json.dumps(metadata, indent=2))
    (folder / "model_config.json").write_text(json.dumps(model_config))
    (folder / "config.yaml").write_text(yaml.safe_dump(training))
