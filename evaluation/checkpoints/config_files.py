"""Read the configuration files of checkpoints strictly: JSON, YAML, and their keys by pydantic models."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evaluation.errors import (
    CheckpointError,
    ConfigError,
    IncompleteCheckpoint,
    UnsupportedCheckpoint,
    first_few,
    kind_of,
)
from evaluation.files import load_json
from evaluation.settings.yaml_files import parse_yaml

CONFIG_FILES = ("model_config.json", "config.yaml", "config.json")
"""Files that are written anew whenever a checkpoint is saved."""


@contextlib.contextmanager
def os_errors_named(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a CheckpointError that names its file, or else `path`."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{error.filename or path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None


def exists(path: Path) -> bool:
    """Return whether anything exists at a path, also a broken link, which reading refuses."""
    return path.exists() or path.is_symlink()


def configuration_file(checkpoint: Path) -> Path | None:
    """Return the first of `CONFIG_FILES`, which each save writes anew; None if there is no checkpoint."""
    paths = (checkpoint / name for name in CONFIG_FILES if (checkpoint / name).is_file())
    return next(paths, None)


def read_text(path: Path) -> str:
    """Read a UTF-8 file."""
    try:
        with os_errors_named(path):
            return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: not UTF-8 text; copy the checkpoint again") from None


def read_table(path: Path, text: str | None = None) -> dict[str, Any]:
    """Return the table in a JSON or YAML file; `text` is its text where that was read already."""
    text = read_text(path) if text is None else text
    try:
        content = parse_yaml(text) if path.suffix == ".yaml" else load_json(text)
    except (ValueError, ConfigError) as error:
        raise CheckpointError(f"{path}: {error}; copy the checkpoint again") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected keys and values; copy the checkpoint again")
    return content


class Unrepresentable(ValueError):
    """A sound configuration that no class of transformers represents."""


Model = TypeVar("Model", bound=BaseModel)


def validated(kind: type[Model], table: dict[str, Any], where: str, owner: str = "") -> Model:
    """Return the table in the file `where`, checked.

    Raises:
        IncompleteCheckpoint: A key is missing.
        UnsupportedCheckpoint: `owner` does not have a key, or no class of transformers represents the model.
        CheckpointError: A value is impossible.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), where, owner) from None


def _refusal(mistakes: Sequence[Any], where: str, owner: str) -> CheckpointError:
    unknown = ("extra_forbidden", "invalid_key")
    foreign = [f"{_key(m)} ({short(m['input'])})" for m in mistakes if m["type"] in unknown]
    first, remedy = mistakes[0], "score it by a `command` of your own"
    reason = first.get("ctx", {}).get("error") or first["msg"]
    found = f"{_key(first)} is {short(first['input'])}: {reason}" if first["loc"] else reason
    if foreign:
        return UnsupportedCheckpoint(
            f"{where}: {first_few(foreign, 3)}: a key that {owner} does not have and that may change what is "
            f"computed, whatever its value; {remedy}, or take it out if it changes nothing"
        )
    if first["type"] == "literal_error" or isinstance(reason, Unrepresentable):
        return UnsupportedCheckpoint(
            f"{where}: {found} cannot be represented by any class of transformers; {remedy}"
        )
    if first["type"] == "missing":
        return IncompleteCheckpoint(
            f"{where}: {_key(first)} is missing, so the file was truncated, or no trainer wrote it; copy "
            "it again"
        )
    return CheckpointError(f"{where}: {found}; correct it, or copy the file again")


def _key(mistake: Any) -> str:
    path = ".".join(map(str, mistake["loc"]))[:60]
    return f"`{path}`" if path.isprintable() else repr(path)


def short(value: Any) -> str:
    """Return a value in at most 61 characters; of a table or list only its kind and length."""
    if isinstance(value, dict | list):
        return f"{kind_of(value)} ({len(value)})"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
