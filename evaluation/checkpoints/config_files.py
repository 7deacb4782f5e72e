"""Read the configuration files of checkpoints strictly: JSON, YAML, and their keys by pydantic models.

A file is refused if it is larger than any configuration, is not UTF-8, or has a key twice. Every error
names the file.
"""

import contextlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
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
from evaluation.settings import yaml_files

CONFIG_FILES = ("model_config.json", "config.yaml", "config.json")
"""Files that are written anew whenever a checkpoint is saved."""

_LARGEST_FILE = 64 << 20
"""Bytes; a configuration has thousands, the index of a large model has millions."""


@contextlib.contextmanager
def os_errors_named(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a CheckpointError that names the file.

    Args:
        path: File or folder to name if the OSError names none.
    """
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{error.filename or path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a checkpoint's file to read its bytes; whatever the system refuses is a CheckpointError."""
    with os_errors_named(path), open(path, "rb") as file:
        yield file


def exists(path: Path) -> bool:
    """Return whether anything exists at a path, also a broken link, which reading refuses."""
    return path.exists() or path.is_symlink()


def configuration_file(checkpoint: Path) -> Path | None:
    """Return the first of `CONFIG_FILES`, which each save writes anew; None if there is no checkpoint."""
    paths = (checkpoint / name for name in CONFIG_FILES if (checkpoint / name).is_file())
    return next(paths, None)


def read_text(path: Path) -> str:
    """Read a UTF-8 file of at most 64 MiB."""
    with open_file(path) as file:
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise CheckpointError(f"{path}: larger than any configuration; copy the checkpoint again")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: not UTF-8 text; copy the checkpoint again") from None


def read_texts(folder: Path) -> dict[str, str]:
    """Return the texts of a folder's `CONFIG_FILES`, in their order, by name; raise as `read_text`."""
    names = [name for name in CONFIG_FILES if exists(folder / name)]
    texts = {name: read_text(folder / name) for name in sorted(names)}  # config.yaml tells most
    return {name: texts[name] for name in names}


def parse_json(path: Path, text: str | None = None) -> dict[str, Any]:
    """Return the table in a JSON file.

    Args:
        text: Its text where that was read already.
    """
    text = read_text(path) if text is None else text
    try:
        content = load_json(text)
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}); copy the checkpoint again") from None
    return _mapping(path, content)


def parse_yaml(path: Path, text: str | None = None) -> dict[str, Any]:
    """Return the table in a YAML file; arguments and errors as those of `parse_json`."""
    text = read_text(path) if text is None else text
    try:
        content = yaml_files.parse_yaml(text)
    except ConfigError as error:
        raise CheckpointError(f"{path}: not YAML ({error}); copy the checkpoint again") from None
    return _mapping(path, content)


def _mapping(path: Path, content: Any) -> dict[str, Any]:
    """Return a table; refuse other values."""
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected keys and values; copy the checkpoint again")
    return content


class Unrepresentable(ValueError):
    """A sound configuration that no class of transformers represents."""


Model = TypeVar("Model", bound=BaseModel)


def validated(
    kind: type[Model], table: dict[str, Any], where: str, unknown: str = "an unknown key"
) -> Model:
    """Return a table of a configuration, checked.

    Args:
        where: The file that an error names.
        unknown: What an error says about keys that the model forbids.

    Raises:
        IncompleteCheckpoint: A key is missing.
        UnsupportedCheckpoint: A key is unknown, or no class of transformers represents the model.
        CheckpointError: A value is impossible.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), where, unknown) from None


def _refusal(mistakes: Sequence[Any], where: str, unknown: str) -> CheckpointError:
    foreign = [
        f"{_key(mistake)} ({short(mistake['input'])})"
        for mistake in mistakes
        if mistake["type"] in ("extra_forbidden", "invalid_key")
    ]
    if foreign:
        return UnsupportedCheckpoint(
            f"{where}: {first_few(foreign, 3)}: {unknown} and that may change what is computed, whatever its "
            "value; score it by a `command` of your own, or take it out if it changes nothing"
        )
    first = mistakes[0]
    reason = first.get("ctx", {}).get("error")
    if isinstance(reason, Unrepresentable):
        return UnsupportedCheckpoint(
            f"{where}: {reason} cannot be represented by any class of transformers; score it by a "
            "`command` of your own"
        )
    if first["type"] == "missing":
        return IncompleteCheckpoint(
            f"{where}: {_key(first)} is missing, so the file was truncated, or no trainer wrote it; copy "
            "it again"
        )
    what = f"{_key(first)} is {short(first['input'])}: {reason or first['msg']}"
    what = what if first["loc"] else str(reason)
    return CheckpointError(f"{where}: {what}; correct it, or copy the file again")


def _key(mistake: Any) -> str:
    path = ".".join(map(str, mistake["loc"]))[:60]
    return f"`{path}`" if path.isprintable() else repr(path)


def short(value: Any) -> str:
    """Return a value in at most 61 characters; of a table or list only its kind and length."""
    if isinstance(value, dict | list):
        return f"{kind_of(value)} ({len(value)})"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
