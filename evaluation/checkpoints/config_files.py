"""Read the configuration files of checkpoints strictly: JSON, YAML, and their keys by type.

A file is refused if it is larger than any configuration, is not UTF-8, or has a key twice. Every error
names the file.
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from evaluation.errors import CheckpointError, ConfigError
from evaluation.json_text import load_json
from evaluation.settings import yaml_files
from evaluation.wording import kind_of

CONFIG_FILES = ("model_config.json", "config.yaml", "config.json")
"""Files that are written anew whenever a checkpoint is saved."""

_LARGEST_FILE = 64 << 20
"""Bytes; a configuration has thousands, the index of a large model has millions."""

_LARGEST_COUNT = 2**31 - 1


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
    """Read a UTF-8 file of at most 64 MiB.

    Raises:
        CheckpointError: It cannot be read, is too large, or is not UTF-8.
    """
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

    Raises:
        CheckpointError: It cannot be read, or is not a table in JSON.
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


@dataclass
class Keys:
    """Typed access to a configuration or a table in it; errors name the file `where` and the key.

    Methods raise CheckpointError for a missing required value, and for one of another type.
    `prefix` is the dotted path of the table, e.g. `tokens.`.
    """

    config: dict[str, Any]
    where: str
    prefix: str = ""

    def wrong(self, key: str, expected: str) -> CheckpointError:
        """Return the error for a key whose value is missing or not what is expected."""
        state = f"is {short(self.config[key])}" if key in self.config else "is missing"
        return CheckpointError(f"{self.where}: `{self.prefix}{key}` {state}; expected {expected}")

    def count(self, key: str, default: int | None = None, *, most: int = _LARGEST_COUNT) -> int:
        """Return a positive integer.

        Args:
            default: Value where the key is absent or null; None: it is required.
            most: Largest value that is accepted.
        """
        count = self.optional_count(key, most=most)
        value = default if count is None else count
        if value is None:
            raise self.wrong(key, f"a positive integer up to {most}")
        return value

    def optional_count(self, key: str, *, most: int = _LARGEST_COUNT) -> int | None:
        """Return an integer from 1 to `most`, or None where the key is absent or null."""
        value = self.config.get(key)
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            raise self.wrong(key, f"a positive integer up to {most}")
        return value

    def number(self, key: str, default: float) -> float:
        """Return a finite positive number; the default is for an absent key, and null is refused."""
        number = self.optional_number(key)
        if number is None and key in self.config:
            raise self.wrong(key, "a positive number")
        return default if number is None else number

    def optional_number(self, key: str) -> float | None:
        """Return a finite positive number, or None where the key is absent or null.

        YAML reads `1e-05` as text, so text that is a number counts as one.
        """
        value = self.config.get(key)
        if value is None:
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 < number < math.inf:
            raise self.wrong(key, "a positive number")
        return number

    def flag(self, key: str, default: bool) -> bool:
        """Return whether a key is true; the default is for an absent key, and null is refused."""
        value = self.config.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """Return a text that is not empty, or None where the key is absent or null."""
        value = self.config.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise self.wrong(key, "text")
        return value


def short(value: Any) -> str:
    """Return a value in at most 61 characters; of a table or list only its kind and length."""
    if isinstance(value, dict | list):
        return f"{kind_of(value)} ({len(value)})"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
