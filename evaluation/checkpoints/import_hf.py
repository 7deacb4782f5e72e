"""Convert a Hugging Face model to a Nanotron checkpoint, as Nanotron's trainer would have saved it."""

import json
import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import yaml

from evaluation.checkpoints.architecture import parse_architecture
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.nanotron_classes.base import Architecture
from evaluation.checkpoints.pretrained import load_config, load_pretrained
from evaluation.checkpoints.save import VERSION, new_folder, write_parameters
from evaluation.checkpoints.training import METADATA
from evaluation.checkpoints.trainings import latest_step
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.files import write_text

log = logging.getLogger(__name__)

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
    """Write `target/<step>` and `target/latest.txt` from a Llama or Qwen2 folder; return the former.

    Args:
        tp: Tensor-parallel size. The vocabulary is padded to a multiple, as the trainer does.
        step: Step to save it as, from 0 on.
        sequence_length: Tokens of a training sequence to record; None: the model's number of positions.
        tokenizer_name: Tokenizer to record, a folder by its absolute path; None: `source`.

    Raises:
        UnsupportedCheckpoint: Nanotron has no such model.
        CheckpointError: `source` is no such folder, `tp` does not fit it, or the step exists already.
    """
    checkpoint = open_checkpoint(source)
    model_config = _nanotron_config(_read_config(checkpoint), checkpoint.path)
    check_complete(checkpoint)
    arch = parse_architecture(model_config, False, None, str(checkpoint.path / "config.json"))
    _check_options(arch, source, tp, step, sequence_length)
    padded = _padded_vocabulary(arch, tp, source)
    model_config["vocab_size"] = padded.vocab_size
    length, tokenizer = sequence_length or arch.positions, tokenizer_name or str(source)
    if Path(tokenizer).is_dir():  # it may be read from another working directory
        tokenizer = str(Path(tokenizer).resolve())
    training = _training_config(model_config, checkpoint.dtype, tp, step, length, tokenizer)
    with new_folder(target / str(step)) as folder:
        _write_weights(checkpoint, folder, arch, padded, tp)
        (folder / METADATA).write_text(json.dumps(_metadata(tp, step, length), indent=2))
        (folder / "model_config.json").write_text(json.dumps(model_config))
        (folder / "config.yaml").write_text(yaml.safe_dump(training))
    _update_latest(target, step)
    return target / str(step)


def _read_config(checkpoint: Checkpoint) -> Any:
    if checkpoint.kind != "huggingface":
        raise CheckpointError(
            f"{checkpoint.path}: not a Hugging Face folder: it has no config.json; name one that has it"
        )
    kind = checkpoint.model_config.get("model_type")
    if kind not in ("llama", "qwen2"):
        raise UnsupportedCheckpoint(
            f"{checkpoint.path / 'config.json'}: model_type {kind!r} has no counterpart in Nanotron; "
            "llama and qwen2 have"
        )
    return load_config(checkpoint)


def _check_options(
    arch: Architecture, source: Path, tp: int, step: int, sequence_length: int | None
) -> None:
    """Raise CheckpointError for an impossible step or length, or a `tp` that does not divide evenly."""
    if step < 0:
        raise CheckpointError(f"{source}: step {step} is negative; give 0 or more")
    sizes = {
        "num_attention_heads": arch.heads,
        "num_key_value_heads": arch.kv_heads,
        "intermediate_size": arch.intermediate_size,
    }
    undivided = [f"{key} {size}" for key, size in sizes.items() if tp < 1 or size % tp]
    if undivided:
        common = math.gcd(*sizes.values())
        possible = [str(n) for n in range(1, common + 1) if common % n == 0]
        raise CheckpointError(
            f"{source}: tp {tp} does not divide {', '.join(undivided)}; "
            f"tp can be {', '.join(possible)}"
        )
    if sequence_length is not None and sequence_length > arch.positions:
        raise CheckpointError(
            f"{source}: --sequence-length {sequence_length} is more than the model's {arch.positions} "
            "positions; give at most that many"
        )


def _padded_vocabulary(arch: Architecture, tp: int, source: Path) -> Architecture:
    """Return the model with a vocabulary that `tp` divides."""
    padded = replace(arch, vocab_size=math.ceil(arch.vocab_size / tp) * tp)
    if padded.vocab_size != arch.vocab_size:
        log.warning(
            "%s: the vocabulary is padded from %d to %d rows of zeros; the added ids get some "
            "probability", source, arch.vocab_size, padded.vocab_size,
        )  # fmt: skip
    return padded


def _update_latest(target: Path, step: int) -> None:
    """Write the highest step into latest.txt, in whatever order steps are imported."""
    before = latest_step(target)
    if before is None or before < step:
        write_text(target / "latest.txt", str(step))


def _write_weights(
    checkpoint: Checkpoint, folder: Path, arch: Architecture, padded: Architecture, tp: int
) -> None:
    """Write Nanotron's tensors, joined from those of the model that transformers loads."""
    theirs = load_pretrained(checkpoint, getattr(torch, checkpoint.dtype)).state_dict()
    sources, padded_sources = arch.parameters(), padded.parameters()

    def tensor(name: str) -> torch.Tensor:
        whole = torch.cat([theirs[target.name] for target in sources[name].targets])
        rows = padded_sources[name].shape[0] - len(whole)
        return torch.cat((whole, whole.new_zeros(rows, *whole.shape[1:])))

    write_parameters(folder, padded_sources, tensor, tp=tp)


def _nanotron_config(config: Any, folder: Path) -> dict[str, Any]:
    """Return the content of Nanotron's model_config.json for a configuration of transformers."""
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
    """Raise UnsupportedCheckpoint for a feature that Nanotron cannot compute."""
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
