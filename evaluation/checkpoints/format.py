"""Open a checkpoint folder: read its configuration files and the headers of its weights.

    10/                         a Nanotron step         folder/              Hugging Face
      config.yaml               training configuration    config.json
      model_config.json         model configuration       model.safetensors, or shards with
      model/…                   weights                   model.safetensors.index.json
      optimizer/, random/, …    pickles, never opened

Nothing here imports torch.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.checkpoints.architecture import check_same, parse_architecture
from evaluation.checkpoints.config_files import (
    CONFIG_FILES,
    exists,
    os_errors_named,
    read_table,
    read_text,
)
from evaluation.checkpoints.headers import TORCH_NAMES, Header, TensorEntry, read_folder_headers
from evaluation.checkpoints.huggingface_config import check_rope, end_tokens, text_config
from evaluation.checkpoints.nanotron_classes.base import NanotronModel
from evaluation.checkpoints.shards import Parameter, read_parameters
from evaluation.checkpoints.state import State, checkpoint_state
from evaluation.checkpoints.training import Training, parse_training
from evaluation.errors import (
    CheckpointError,
    IncompleteCheckpoint,
    UnsupportedCheckpoint,
)
from evaluation.settings.steps import step_of_folder

_ROUTER = ".mlp.router.weight"
"""Suffix of the routers' names: they stay float32 whatever the model's dtype; a dtype holds all others."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint on disk, as it was when it was opened; `Contents` gives its identity."""

    path: Path
    kind: Literal["nanotron", "huggingface"]
    model_config: dict[str, Any]
    training: Training | None = None
    """None if there is no config.yaml; then tokenizer and sequence length are unknown."""
    use_mup: bool | None = None
    """None if not known."""
    state: State
    """State of its files before they were read."""
    texts: Mapping[str, str]
    """Its configuration files by name."""
    headers: tuple[Header, ...]
    """Headers of its weight files."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """A Nanotron checkpoint's parameters by name; empty for a Hugging Face folder."""
    vocab_size: int
    """Rows of the embedding; with padding more than the tokenizer's vocabulary."""
    dtype: str

    @property
    def weights(self) -> list[Path]:
        """Its weight files, sorted."""
        return sorted(header.path for header in self.headers)

    @property
    def tensors(self) -> Sequence[Parameter | TensorEntry]:
        """Its tensors, each whole; those that are tied once."""
        stored = [entry for header in self.headers for entry in header.tensors.values()]
        return [*self.parameters.values()] or stored

    @property
    def parameter_count(self) -> int:
        """Number of its weights."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors)

    @property
    def tokenizer_name(self) -> str | None:
        """The tokenizer that its training names."""
        return self.training.tokenizer_name if self.training else None

    @property
    def sequence_length(self) -> int | None:
        """Tokens of a sequence of its training."""
        return self.training.sequence_length if self.training else None

    @property
    def end_tokens(self) -> set[int]:
        """Ids that end an answer by a Hugging Face folder's config.json and generation_config.json.

        Those of Nanotron's configurations were typed by hand, and are often not the tokenizer's.
        """
        if self.kind == "nanotron":
            return set()
        return {end for end in end_tokens(self.model_config, self.path) if end < self.vocab_size}

    @functools.cached_property
    def architecture(self) -> NanotronModel:
        """Sizes and features of a Nanotron model; raises as `parse_architecture`.

        If model_config.json and config.yaml both describe the model, they must agree.
        """
        own, trained = self.path / "model_config.json", self.path / "config.yaml"
        is_own = own.name in self.texts
        where, given = str(own if is_own else trained), (self.use_mup, self.sequence_length)
        model = parse_architecture(self.model_config, *given, where)
        described = self.training.described if self.training else None
        if is_own and described is not None:
            check_same(model, parse_architecture(described, *given, str(trained)), where)
        return model


def open_checkpoint(path: Path, *, use_mup: bool | None = None) -> Checkpoint:
    """Open a Nanotron step or a Hugging Face folder: its configuration and headers; no weight is read.

    Args:
        path: The folder, or one of Nanotron steps, of which `latest.txt` names the one to open.
        use_mup: Whether the model uses muP, for folders without the config.yaml that records it.

    Raises CheckpointError, or IncompleteCheckpoint if a part is missing.
    """
    with os_errors_named(path):
        if (path / "latest.txt").is_file() and not (path / "model").is_dir():
            path = path / read_text(path / "latest.txt").strip()
        if not path.is_dir():
            raise CheckpointError(f"{path}: no such folder; check the path and the step")
        state = checkpoint_state(path)  # before anything is read
        texts = {name: read_text(path / name) for name in CONFIG_FILES if exists(path / name)}
        if "config.json" in texts and not (path / "model").is_dir():
            return _open_huggingface(path, texts, state)
        return _open_nanotron(path, texts, state, use_mup)


def _open_nanotron(
    folder: Path, texts: Mapping[str, str], state: State, use_mup: bool | None
) -> Checkpoint:
    text = texts.get("config.yaml")
    training = None if text is None else parse_training(folder / "config.yaml", text)
    model_config = _model_config(folder, texts, training)
    parameters = read_parameters(folder)
    dtypes = {item.dtype for item in parameters.values() if not item.name.endswith(_ROUTER)}
    if len(dtypes) != 1:
        dtypes = {"F64"} if "F64" in dtypes else {"F32"}
    return Checkpoint(
        path=folder,
        kind="nanotron",
        model_config=model_config,
        training=training,
        use_mup=training.use_mup if training else use_mup,
        state=state,
        texts=texts,
        headers=tuple(shard.header for item in parameters.values() for shard in item.shards),
        parameters=parameters,
        vocab_size=_vocab_size(model_config, folder),
        dtype=TORCH_NAMES[min(dtypes)],
    )


def _open_huggingface(folder: Path, texts: Mapping[str, str], state: State) -> Checkpoint:
    config = read_table(folder / "config.json", texts["config.json"])
    check_rope(config, folder / "config.json")
    headers = read_folder_headers(folder)
    dtypes = {entry.dtype for header in headers for entry in header.tensors.values()}
    supported = [name for dtype, name in TORCH_NAMES.items() if dtype in dtypes]
    if not supported:
        raise UnsupportedCheckpoint(
            f"{folder}: its tensors are {sorted(dtypes)}; only {sorted(TORCH_NAMES)} can be read"
        )
    return Checkpoint(
        path=folder,
        kind="huggingface",
        model_config=config,
        state=state,
        texts=texts,
        headers=tuple(headers),
        vocab_size=_vocab_size(text_config(config), folder),
        dtype=supported[0],
    )


def _model_config(
    folder: Path, texts: Mapping[str, str], training: Training | None
) -> dict[str, Any]:
    """Return model_config.json, or without it that part of config.yaml."""
    path = folder / "model_config.json"
    if path.name in texts:
        return read_table(path, texts[path.name])
    if training and training.described is not None:
        return training.described
    if training or (folder / "model").is_dir():
        raise IncompleteCheckpoint(
            f"{path}: missing, and so is `model.model_config` of config.yaml; wait until the checkpoint is "
            "written, or copy it again"
        )
    steps = {step: p for p in folder.iterdir() if (step := step_of_folder(p.name)) is not None}
    hint = f"; give one of its steps, e.g. {steps[max(steps)]}" if steps else ""
    raise CheckpointError(
        f"{folder}: not a checkpoint: no model_config.json, config.yaml or config.json{hint}"
    )


def _vocab_size(config: dict[str, Any], folder: Path) -> int:
    size = config.get("vocab_size")
    if type(size) is not int or size < 1:
        raise CheckpointError(
            f"{folder}: `vocab_size` in its model configuration is {str(size)[:40]!r}; "
            "correct it to the number of rows of its embedding"
        )
    return size
