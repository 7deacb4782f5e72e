"""What a checkpoint folder is, from its configuration files and the headers of its weights.

    10/                         a Nanotron step         folder/              Hugging Face
      config.yaml               training configuration    config.json
      model_config.json         the model's               model.safetensors, or shards with
      model/…                   weights                   model.safetensors.index.json
      optimizer/, random/, …    pickles, never opened

Nothing here imports torch.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from evaluation.checkpoints import huggingface
from evaluation.checkpoints.headers import Header
from evaluation.checkpoints.shards import Parameter, read_parameters
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from evaluation.files import fingerprint

log = logging.getLogger(__name__)

ROUTER = ".mlp.router.weight"
"""End of the name of the one kind of parameter that stays float32 whatever the model's dtype."""

_CONFIGURATIONS = ("config.yaml", "model_config.json", "config.json")
_TORCH_NAMES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk. `identity` changes when its configuration or any weight file does."""

    path: Path
    kind: Literal["nanotron", "huggingface"]
    model_config: dict[str, Any]
    training_config: dict[str, Any] | None
    step: int | None
    identity: str
    tokenizer_name: str | None
    sequence_length: int | None
    vocab_size: int
    """Rows of the embedding, which padding may make more than the tokenizer has."""
    dtype: str


def open_checkpoint(path: Path) -> Checkpoint:
    """Opens a step's folder, the folder above it by its `latest.txt`, or a Hugging Face folder.

    Raises CheckpointError if there is no checkpoint or it cannot be read, IncompleteCheckpoint if
    part of it is missing.
    """
    folder = _step_folder(Path(path))
    if (folder / "config.json").is_file() and not (folder / "model").is_dir():
        return _open_huggingface(folder)
    return _open_nanotron(folder)


def _step_folder(path: Path) -> Path:
    if not path.exists():
        raise CheckpointError(f"{path}: no such folder; check the path and the step")
    if not path.is_dir():
        raise CheckpointError(f"{path}: a file; give the checkpoint's folder")
    latest = path / "latest.txt"
    if not latest.is_file() or (path / "model").is_dir():
        return path
    name = read_text(latest).strip()
    if not name.isascii() or not name.isdigit():
        raise CheckpointError(
            f"{latest}: {name[:40]!r} is not a step; give a step's folder instead"
        )
    if not (path / name).is_dir():
        raise IncompleteCheckpoint(
            f"{path / name}: no such folder, though {latest} names it; give another step's folder"
        )
    return path / name


def _open_nanotron(folder: Path) -> Checkpoint:
    model_config, training = _nanotron_configs(folder)
    parameters = read_parameters(folder)
    headers = [shard.header for item in parameters.values() for shard in item.shards]
    return Checkpoint(
        path=folder,
        kind="nanotron",
        model_config=model_config,
        training_config=training or None,
        step=_step(folder, training),
        identity=identity(folder, headers),
        tokenizer_name=_lookup(training, "tokenizer", "tokenizer_name_or_path", str),
        sequence_length=_lookup(training, "tokens", "sequence_length", int),
        vocab_size=_vocab_size(model_config, folder),
        dtype=_dtype(parameters.values()),
    )


def _open_huggingface(folder: Path) -> Checkpoint:
    config = _parse_json(folder / "config.json")
    inner = config.get("text_config")
    headers = huggingface.read_headers(folder)
    dtypes = {entry.dtype for header in headers for entry in header.tensors.values()}
    known = dtypes & _TORCH_NAMES.keys()
    if not known:
        raise UnsupportedCheckpoint(
            f"{folder}: its tensors are {sorted(dtypes)}; only {sorted(_TORCH_NAMES)} can be read"
        )
    return Checkpoint(
        path=folder,
        kind="huggingface",
        model_config=config,
        training_config=None,
        step=int(folder.name) if folder.name.isdigit() else None,
        identity=identity(folder, headers),
        tokenizer_name=None,
        sequence_length=None,
        vocab_size=_vocab_size(inner if isinstance(inner, dict) else config, folder),
        dtype=_TORCH_NAMES[min(known, key=list(_TORCH_NAMES).index)],
    )


def _nanotron_configs(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model's configuration, and the training's ({} if there is none)."""
    training = {}
    if (folder / "config.yaml").is_file():
        training = _parse_yaml(folder / "config.yaml")
    if (folder / "model_config.json").is_file():
        return _parse_json(folder / "model_config.json"), training
    model = training.get("model")
    inner = model.get("model_config") if isinstance(model, dict) else None
    if isinstance(inner, dict):
        return inner, training
    if training:
        raise IncompleteCheckpoint(
            f"{folder / 'model_config.json'}: missing, and {folder / 'config.yaml'} has no "
            "model.model_config in its place; copy the checkpoint again"
        )
    raise _no_configuration(folder)


def _no_configuration(folder: Path) -> CheckpointError:
    if (folder / "model").is_dir():
        return IncompleteCheckpoint(
            f"{folder / 'model_config.json'}: missing, and so is config.yaml; wait until the "
            "checkpoint is written, or copy it again"
        )
    steps = sorted((p.name for p in folder.iterdir() if p.name.isdigit()), key=int)
    hint = f"; give one of its steps, e.g. {folder / steps[-1]}" if steps else ""
    return CheckpointError(
        f"{folder}: not a checkpoint: no model_config.json, config.yaml or config.json{hint}"
    )


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: not UTF-8 text; copy the checkpoint again") from None


def _parse_json(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON ({error}); copy the checkpoint again") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected keys and values; copy the checkpoint again")
    return content


def _parse_yaml(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{path}: not YAML ({reason}); copy the checkpoint again") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected keys and values; copy the checkpoint again")
    return content


def _lookup(training: dict[str, Any], section: str, key: str, kind: type) -> Any:
    inner = training.get(section)
    value = inner.get(key) if isinstance(inner, dict) else None
    return value if type(value) is kind else None


def _step(folder: Path, training: dict[str, Any]) -> int | None:
    name = folder.resolve().name
    if name.isascii() and name.isdigit():
        return int(name)
    found: int | None = _lookup(training, "general", "step", int)
    return found


def _vocab_size(config: dict[str, Any], folder: Path) -> int:
    size = config.get("vocab_size")
    if type(size) is not int or size < 1:
        raise CheckpointError(f"{folder}: `vocab_size` in its model configuration is {size!r}")
    return size


def _dtype(parameters: Iterable[Parameter]) -> str:
    """The one dtype of the weights, routers aside; float32, which loses nothing, if there are more."""
    dtypes = {item.dtype for item in parameters if not item.name.endswith(ROUTER)}
    if len(dtypes) == 1:
        return _TORCH_NAMES[dtypes.pop()]
    return "float64" if "F64" in dtypes else "float32"


def identity(folder: Path, headers: Iterable[Header]) -> str:
    """Of the configurations and of every weight file's header, size and time of change."""
    configurations = [folder / name for name in _CONFIGURATIONS]
    texts = [read_text(path) for path in configurations if path.is_file()]
    files = sorted(
        [header.path.relative_to(folder).as_posix(), header.size, header.mtime_ns, header.digest]
        for header in headers
    )
    return fingerprint({"configurations": texts, "files": files})
