"""A Hugging Face model as a Nanotron checkpoint, as Nanotron's trainer would have saved it."""

import contextlib
import json
import logging
import math
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from safetensors import safe_open

from evaluation.checkpoints.architecture import Architecture, parse_architecture
from evaluation.checkpoints.format import Checkpoint, open_checkpoint, read_text
from evaluation.checkpoints.huggingface import read_headers
from evaluation.checkpoints.mapping import Source, expected_parameters
from evaluation.checkpoints.sharding import VERSION, write_parameters
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.store import write_text

log = logging.getLogger(__name__)


def import_hf(
    source: Path,
    target: Path,
    *,
    tp: int = 1,
    step: int = 0,
    sequence_length: int | None = None,
    tokenizer_name: str | None = None,
) -> Path:
    """Writes `target/<step>` and `target/latest.txt` from a Llama or Qwen2 folder; gives the step.

    A vocabulary that `tp` does not divide is padded, as the trainer does. `sequence_length` and
    `tokenizer_name` are recorded: the model's longest, and `source`, if not given. Raises
    UnsupportedCheckpoint if Nanotron has no such model, CheckpointError if `tp` does not fit it or
    the step is there already.
    """
    checkpoint = open_checkpoint(source)
    if checkpoint.kind != "huggingface":
        raise CheckpointError(f"{source}: not a Hugging Face folder: it has no config.json")
    config = _read_config(checkpoint)
    model_config = _model_config(config, checkpoint.path)
    arch = parse_architecture(model_config, {}, None, str(checkpoint.path / "config.json"))
    _check_tp(arch, tp, source)
    padded = replace(arch, vocab_size=math.ceil(arch.vocab_size / tp) * tp)
    if padded.vocab_size != arch.vocab_size:
        log.warning(
            "%s: the vocabulary is padded from %d to %d rows of zeros; the added ids get some "
            "probability", source, arch.vocab_size, padded.vocab_size,
        )  # fmt: skip
    model_config["vocab_size"] = padded.vocab_size
    with _new_step(target, step) as folder:
        reader = _Reader(checkpoint, expected_parameters(arch))
        sources = expected_parameters(padded)
        write_parameters(
            folder, sources, lambda name: _padded(reader.tensor(name), sources[name]), tp=tp
        )
        length = sequence_length or arch.positions
        name = tokenizer_name or str(source)
        _write_configs(folder, model_config, checkpoint.dtype, tp, step, length, name)
    return target / str(step)


def _read_config(checkpoint: Checkpoint) -> Any:
    kind = checkpoint.model_config.get("model_type")
    if kind not in ("llama", "qwen2"):
        raise UnsupportedCheckpoint(
            f"{checkpoint.path / 'config.json'}: model_type {kind!r} has no counterpart in Nanotron; "
            "llama and qwen2 have"
        )
    if "quantization_config" in checkpoint.model_config:
        raise UnsupportedCheckpoint(
            f"{checkpoint.path / 'config.json'}: a quantized model; import the original"
        )
    try:
        return transformers.AutoConfig.from_pretrained(checkpoint.path, local_files_only=True)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{checkpoint.path / 'config.json'}: {reason}") from None


def _model_config(config: Any, folder: Path) -> dict[str, Any]:
    """Nanotron's model_config.json; raises UnsupportedCheckpoint for what Nanotron cannot compute."""
    rope = config.rope_parameters
    factor = rope.get("factor") if rope["rope_type"] == "linear" else None
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
                f"{folder / 'config.json'}: {key} {value!r} has no counterpart in Nanotron"
            )
    common = {
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "hidden_act": config.hidden_act,
        "hidden_size": config.hidden_size,
        "initializer_range": config.initializer_range,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "num_attention_heads": config.num_attention_heads,
        "num_hidden_layers": config.num_hidden_layers,
        "num_key_value_heads": config.num_key_value_heads,
        "pad_token_id": config.pad_token_id,
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


def _check_tp(arch: Architecture, tp: int, source: Path) -> None:
    """Heads, key-value heads and the intermediate size must be divided evenly."""
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


@contextlib.contextmanager
def _new_step(target: Path, step: int) -> Iterator[Path]:
    """A temporary folder that becomes `target/<step>`, named by `latest.txt`, if all goes well."""
    final = target / str(step)
    if step < 0:
        raise CheckpointError(f"{final}: a step cannot be negative")
    if final.exists():
        raise CheckpointError(f"{final}: is there already; remove it or choose another step")
    temporary = target / f".{step}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"
    try:
        temporary.mkdir(parents=True)
        yield temporary
        os.rename(temporary, final)
        _point_latest(target, step)
    except OSError as error:
        raise CheckpointError(
            f"{final}: cannot be written ({error.strerror}); free disk space or choose another target"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


class _Reader:
    """Whole Nanotron tensors, put together from a Hugging Face folder one at a time."""

    def __init__(self, checkpoint: Checkpoint, expected: dict[str, Source]) -> None:
        self.expected = expected
        self.places = {
            name: header.path for header in read_headers(checkpoint.path) for name in header.tensors
        }
        self.folder = checkpoint.path
        tied = {"lm_head.weight"} if checkpoint.model_config.get("tie_word_embeddings") else set()
        wanted = {target.name for source in expected.values() for target in source.targets}
        foreign = {name for name in self.places if "rotary_emb" not in name} - wanted - tied
        for problem, names in (("lacks", wanted - self.places.keys()), ("has a foreign", foreign)):
            if names:
                raise CheckpointError(
                    f"{self.folder}: {problem} {sorted(names)[0]}; download again"
                )

    def tensor(self, name: str) -> torch.Tensor:
        """A parameter by Nanotron's name; raises CheckpointError for an unexpected shape."""
        source = self.expected[name]
        whole = torch.cat([self._read(target.name) for target in source.targets])
        if whole.shape != source.shape:
            raise CheckpointError(
                f"{self.folder}: {source.targets[0].name} has shape {tuple(whole.shape)}, but "
                f"config.json makes it {source.shape}"
            )
        return whole

    def _read(self, name: str) -> torch.Tensor:
        with safe_open(self.places[name], framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(name)
        return tensor


def _padded(tensor: torch.Tensor, source: Source) -> torch.Tensor:
    """The tensor with rows of zeros added up to the shape that is written."""
    if tuple(tensor.shape) == source.shape:
        return tensor
    zeros = tensor.new_zeros(source.shape[0] - tensor.shape[0], *tensor.shape[1:])
    return torch.cat((tensor, zeros))


def _write_configs(
    folder: Path,
    model_config: dict[str, Any],
    dtype: str,
    tp: int,
    step: int,
    sequence_length: int,
    tokenizer_name: str,
) -> None:
    parallelism = {
        "dp": 1,
        "pp": 1,
        "tp": tp,
        "context_parallel_size": 1,
        "expert_parallel_size": 1,
    }
    training = {
        "checkpoints": {"checkpoints_path": str(folder.parent)},
        "general": {"project": "import", "run": folder.parent.name, "seed": 42, "step": step},
        "model": {
            "dtype": dtype,
            "init_method": {"std": model_config["initializer_range"]},
            "make_vocab_size_divisible_by": 1,
            "model_config": model_config,
        },
        "parallelism": parallelism,
        "tokenizer": {"tokenizer_name_or_path": tokenizer_name, "tokenizer_revision": None},
        "tokens": {"sequence_length": sequence_length},
    }
    stage = {
        "name": "import",
        "start_training_step": 1,
        "consumed_train_samples": 0,
        "sequence_length": sequence_length,
        "consumed_tokens_per_dataset_folder": {},
    }
    metadata = {
        "version": VERSION,
        "tp": tp,
        "dp": 1,
        "cp": 1,
        "custom_metas": None,
        "metas": {
            "last_train_step": step,
            "consumed_train_samples": 0,
            "consumed_tokens_total": 0,
            "last_stage_idx": 0,
            "data_stages": [stage],
        },
    }
    (folder / "checkpoint_metadata.json").write_text(json.dumps(metadata, indent=2))
    (folder / "model_config.json").write_text(json.dumps(model_config))
    (folder / "config.yaml").write_text(yaml.safe_dump(training))


def _point_latest(target: Path, step: int) -> None:
    """Names the highest step, in whatever order steps are imported."""
    latest = target / "latest.txt"
    known = read_text(latest).strip() if latest.is_file() else ""
    if not known.isdigit() or int(known) < step:
        write_text(latest, str(step))
