"""Open a checkpoint folder: read its configuration files and the headers of its weights.

    10/                         a Nanotron step         folder/              Hugging Face
      config.yaml               training configuration    config.json
      model_config.json         model configuration       model.safetensors, or shards with
      model/…                   weights                   model.safetensors.index.json
      optimizer/, random/, …    pickles, never opened

Nothing here imports torch.
"""

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.checkpoints.architecture import check_same, parse_architecture
from evaluation.checkpoints.config_files import (
    exists,
    os_errors_named,
    parse_json,
    read_text,
    read_texts,
)
from evaluation.checkpoints.headers import TORCH_NAMES, Header, read_folder_headers
from evaluation.checkpoints.huggingface_config import check_rope, end_tokens, text_config
from evaluation.checkpoints.nanotron_classes.base import NanotronModel
from evaluation.checkpoints.shards import Parameter, read_parameters
from evaluation.checkpoints.state import State, checkpoint_state
from evaluation.checkpoints.training import Training, parse_training
from evaluation.errors import (
    CheckpointError,
    IncompleteCheckpoint,
    UnsupportedCheckpoint,
    near_path,
)
from evaluation.settings.steps import step_named, step_of_folder

log = logging.getLogger(__name__)

_ROUTER = ".mlp.router.weight"
"""Suffix of the routers' names: they stay float32 whatever the model's dtype; a dtype holds all others."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint on disk, as it was when it was opened; `Contents` gives its identity."""

    path: Path
    kind: Literal["nanotron", "huggingface"]
    model_config: dict[str, Any]
    training_config: dict[str, Any] | None = None
    """None if there is no config.yaml; then tokenizer and sequence length are unknown."""
    use_mup: bool | None = None
    """None if not known."""
    step: int | None
    state: State
    """State of its files before they were read."""
    texts: Mapping[str, str]
    """Its configuration files by name."""
    headers: tuple[Header, ...]
    """Headers of its weight files."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """A Nanotron checkpoint's parameters by name; empty for a Hugging Face folder."""
    tokenizer_name: str | None = None
    sequence_length: int | None = None
    vocab_size: int
    """Rows of the embedding; with padding more than the tokenizer's vocabulary."""
    dtype: str

    @property
    def weights(self) -> list[Path]:
        """Its weight files, sorted."""
        return sorted(header.path for header in self.headers)

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
        where = str(own if is_own else trained)
        found = parse_architecture(self.model_config, self.use_mup, self.sequence_length, where)
        other = (self.training_config or {}).get("model", {}).get("model_config")
        if is_own and isinstance(other, dict):
            there = parse_architecture(other, self.use_mup, self.sequence_length, str(trained))
            check_same(found, there, where)
        return found


def open_checkpoint(
    path: Path, *, use_mup: bool | None = None, follow_latest: bool = True
) -> Checkpoint:
    """Open a Nanotron step or a Hugging Face folder: its configuration and headers; no weight is read.

    Args:
        path: The folder, or one of Nanotron steps, of which `latest.txt` names the one to open.
        use_mup: Whether the model uses muP, for folders without the config.yaml that records it.
        follow_latest: Whether `latest.txt` is followed; a stage's steps and bridge are folders themselves.

    Raises:
        CheckpointError: There is no checkpoint, it cannot be read, or it contradicts `use_mup`.
        IncompleteCheckpoint: A part is missing.
    """
    with os_errors_named(path):
        folder = _step_folder(Path(path), follow_latest)
        state = checkpoint_state(folder)  # before anything is read
        texts = read_texts(folder)
        if "config.json" in texts and not (folder / "model").is_dir():
            return _open_huggingface(folder, texts, state)
        return _open_nanotron(folder, texts, state, use_mup)


def _step_folder(path: Path, follow_latest: bool) -> Path:
    if not path.exists():
        raise CheckpointError(
            f"{path}: no such folder{near_path(path, Path.is_dir)}; check the path and the step"
        )
    if not path.is_dir():
        raise CheckpointError(f"{path}: a file; give the checkpoint's folder")
    latest = path / "latest.txt"
    if not follow_latest or not exists(latest) or (path / "model").is_dir():
        return path
    name = read_text(latest).strip()
    if step_named(name) is None:
        raise CheckpointError(
            f"{latest}: {name[:40]!r} is not a step; give a step's folder instead"
        )
    if not (path / name).is_dir():
        raise IncompleteCheckpoint(
            f"{path / name}: no such folder, though {latest} names it; give another step's folder"
        )
    return path / name


def _open_nanotron(
    folder: Path, texts: Mapping[str, str], state: State, use_mup: bool | None
) -> Checkpoint:
    text = texts.get("config.yaml")
    training = None if text is None else parse_training(folder / "config.yaml", text)
    model_config = _model_config(folder, texts.get("model_config.json"), training)
    if training is not None and use_mup not in (None, training.use_mup):
        raise CheckpointError(
            f"{folder / 'config.yaml'}: has `use_mup: {str(training.use_mup).lower()}`, but "
            f"{str(use_mup).lower()} was given for checkpoints that do not record it; correct that"
        )
    parameters = read_parameters(folder)
    dtypes = {item.dtype for item in parameters.values() if not item.name.endswith(_ROUTER)}
    if len(dtypes) != 1:
        dtypes = {"F64"} if "F64" in dtypes else {"F32"}
    named, step = step_of_folder(folder.resolve().name), training.step if training else None
    if None not in (named, step) and named != step:
        _warn_of_other_step(folder, named, step)
    return Checkpoint(
        path=folder,
        kind="nanotron",
        model_config=model_config,
        training_config=training.content if training else None,
        use_mup=training.use_mup if training else use_mup,
        step=step if named is None else named,
        state=state,
        texts=texts,
        headers=tuple(shard.header for item in parameters.values() for shard in item.shards),
        parameters=parameters,
        tokenizer_name=training.tokenizer_name if training else None,
        sequence_length=training.sequence_length if training else None,
        vocab_size=_vocab_size(model_config, folder),
        dtype=TORCH_NAMES[min(dtypes)],
    )


def _open_huggingface(folder: Path, texts: Mapping[str, str], state: State) -> Checkpoint:
    config = parse_json(folder / "config.json", texts["config.json"])
    check_rope(config, folder / "config.json")
    headers = read_folder_headers(folder)
    dtypes = {entry.dtype for header in headers for entry in header.tensors.values()}
    supported = dtypes & TORCH_NAMES.keys()
    if not supported:
        raise UnsupportedCheckpoint(
            f"{folder}: its tensors are {sorted(dtypes)}; only {sorted(TORCH_NAMES)} can be read"
        )
    return Checkpoint(
        path=folder,
        kind="huggingface",
        model_config=config,
        step=step_of_folder(folder.name),
        state=state,
        texts=texts,
        headers=tuple(headers),
        vocab_size=_vocab_size(text_config(config), folder),
        dtype=TORCH_NAMES[min(supported, key=list(TORCH_NAMES).index)],
    )


def _model_config(folder: Path, text: str | None, training: Training | None) -> dict[str, Any]:
    """Return model_config.json, or without it that part of config.yaml.

    Args:
        text: The text of model_config.json; None if there is none.
    """
    path = folder / "model_config.json"
    if text is not None:
        return parse_json(path, text)
    if training is None:
        raise _no_configuration(folder)
    if training.described is None:
        raise IncompleteCheckpoint(
            f"{path}: missing, and {folder / 'config.yaml'} has no model.model_config in its place; "
            "copy the checkpoint again"
        )
    return training.described


def _no_configuration(folder: Path) -> CheckpointError:
    if (folder / "model").is_dir():
        return IncompleteCheckpoint(
            f"{folder / 'model_config.json'}: missing, and so is config.yaml; wait until the "
            "checkpoint is written, or copy it again"
        )
    steps = {step: p for p in folder.iterdir() if (step := step_of_folder(p.name)) is not None}
    hint = f"; give one of its steps, e.g. {steps[max(steps)]}" if steps else ""
    return CheckpointError(
        f"{folder}: not a checkpoint: no model_config.json, config.yaml or config.json{hint}"
    )


@functools.cache
def _warn_of_other_step(folder: Path, named: int | None, written: int | None) -> None:
    """Warn once: a folder that was renamed or copied on purpose is the step of its name."""
    log.warning(
        "%s: is read as step %d, the name of its folder, but its config.yaml has step %d; rename the "
        "folder if that is not intended", folder, named, written,
    )  # fmt: skip


def _vocab_size(config: dict[str, Any], folder: Path) -> int:
    size = config.get("vocab_size")
    if type(size) is not int or size < 1:
        raise CheckpointError(
            f"{folder}: `vocab_size` in its model configuration is {str(size)[:40]!r}; "
            "correct it to the number of rows of its embedding"
        )
    return size
