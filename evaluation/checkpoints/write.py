"""A Hugging Face model as a Nanotron checkpoint, as Nanotron's trainer would have saved it."""

import contextlib
import json
import logging
import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open

from evaluation.checkpoints.architecture import Architecture, parse_architecture
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.documents import read_text
from evaluation.checkpoints.format import TORCH_NAMES, Checkpoint, open_checkpoint
from evaluation.checkpoints.huggingface import read_headers
from evaluation.checkpoints.imported import (
    checkpoint_metadata,
    nanotron_model_config,
    training_config,
)
from evaluation.checkpoints.mapping import Source, expected_parameters
from evaluation.checkpoints.pretrained import load_config
from evaluation.checkpoints.sharding import write_parameters
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from evaluation.files import temporary_path, write_text
from evaluation.settings.steps import step_named

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
        raise CheckpointError(
            f"{source}: not a Hugging Face folder: it has no config.json; name one that has"
        )
    config = _read_config(checkpoint)
    check_complete(checkpoint)
    model_config = nanotron_model_config(config, checkpoint.path)
    arch = parse_architecture(model_config, False, None, str(checkpoint.path / "config.json"))
    _check_tp(arch, tp, source)
    padded = _padded_to(arch, tp, source)
    model_config["vocab_size"] = padded.vocab_size
    with _new_step(target, step) as folder:
        reader = _Reader(checkpoint, expected_parameters(arch))
        sources = expected_parameters(padded)
        write_parameters(
            folder, sources, lambda name: _padded(reader.tensor(name), sources[name]), tp=tp
        )
        length = sequence_length or arch.positions
        training = training_config(
            model_config,
            dtype=checkpoint.dtype,
            tp=tp,
            step=step,
            sequence_length=length,
            tokenizer_name=tokenizer_name or str(source),
        )
        metadata = checkpoint_metadata(tp=tp, step=step, sequence_length=length)
        _write_configs(folder, model_config, training, metadata)
    return target / str(step)


def _padded_to(arch: Architecture, tp: int, source: Path) -> Architecture:
    """The model with a vocabulary that `tp` divides."""
    padded = replace(arch, vocab_size=math.ceil(arch.vocab_size / tp) * tp)
    if padded.vocab_size != arch.vocab_size:
        log.warning(
            "%s: the vocabulary is padded from %d to %d rows of zeros; the added ids get some "
            "probability", source, arch.vocab_size, padded.vocab_size,
        )  # fmt: skip
    return padded


def _read_config(checkpoint: Checkpoint) -> Any:
    kind = checkpoint.model_config.get("model_type")
    if kind not in ("llama", "qwen2"):
        raise UnsupportedCheckpoint(
            f"{checkpoint.path / 'config.json'}: model_type {kind!r} has no counterpart in Nanotron; "
            "llama and qwen2 have"
        )
    return load_config(checkpoint)


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
        raise CheckpointError(f"{final}: a step cannot be negative; give one from 0 on")
    if final.exists():
        raise CheckpointError(f"{final}: is there already; remove it or choose another step")
    temporary = temporary_path(final)
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
        headers = read_headers(checkpoint.path)
        self.places = {name: header.path for header in headers for name in header.tensors}
        self.folder = checkpoint.path
        tied = {"lm_head.weight"} if checkpoint.model_config.get("tie_word_embeddings") else set()
        wanted = {target.name for source in expected.values() for target in source.targets}
        foreign = {name for name in self.places if "rotary_emb" not in name} - wanted - tied
        for problem, names in (("lacks", wanted - self.places.keys()), ("has a foreign", foreign)):
            if names:
                raise CheckpointError(
                    f"{self.folder}: {problem} {sorted(names)[0]}; download again"
                )
        for header in headers:
            for name in wanted & header.tensors.keys():
                if header.tensors[name].dtype not in TORCH_NAMES:
                    raise CheckpointError(
                        f"{header.path}: {name} is {header.tensors[name].dtype}; only "
                        f"{', '.join(TORCH_NAMES)} can be trained; download again"
                    )
        shapes = {name: one.shape for header in headers for name, one in header.tensors.items()}
        for source in expected.values():
            for target in source.targets:
                shape = (target.stop - target.start, *source.shape[1:])
                if shapes[target.name] != shape:
                    raise CheckpointError(
                        f"{self.folder}: {target.name} has shape {shapes[target.name]}, but config.json "
                        f"makes it {shape}; download both again"
                    )
        if tied & self.places.keys():
            self._check_tied()

    def _check_tied(self) -> None:
        """Raises CheckpointError for a head that differs from the embedding it is tied to."""
        if not torch.equal(self._read("lm_head.weight"), self._read("model.embed_tokens.weight")):
            raise CheckpointError(
                f"{self.places['lm_head.weight']}: its lm_head.weight differs from the embedding, though "
                "config.json ties them; set `tie_word_embeddings` to false there, or remove the tensor"
            )

    def tensor(self, name: str) -> torch.Tensor:
        """A parameter by Nanotron's name."""
        return torch.cat([self._read(target.name) for target in self.expected[name].targets])

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
    folder: Path, model_config: dict[str, Any], training: dict[str, Any], metadata: dict[str, Any]
) -> None:
    (folder / "checkpoint_metadata.json").write_text(json.dumps(metadata, indent=2))
    (folder / "model_config.json").write_text(json.dumps(model_config))
    (folder / "config.yaml").write_text(yaml.safe_dump(training))


def _point_latest(target: Path, step: int) -> None:
    """Names the highest step, in whatever order steps are imported."""
    latest = target / "latest.txt"
    known = step_named(read_text(latest).strip()) if latest.is_file() else None
    if known is None or known < step:
        write_text(latest, str(step))
