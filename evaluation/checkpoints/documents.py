"""JSON and YAML that others wrote, read so that nothing in them can hang, crash or be overlooked.

A file is refused if it is no plain file, larger than any configuration, no UTF-8, gives a key
twice, or holds text that cannot be written down again. Every refusal names the file.
"""

from pathlib import Path
from typing import Any

from evaluation.errors import CheckpointError, ConfigError
from evaluation.files import open_regular
from evaluation.json_text import load_json
from evaluation.settings import yaml_files

CONFIGURATIONS = ("model_config.json", "config.yaml", "config.json")
"""Files that every writing of a checkpoint renews."""

_LARGEST = 64 << 20
"""Bytes; a configuration has some thousand, the index of a large model some million."""


def read_text(path: Path) -> str:
    """A file's text; raises CheckpointError."""
    try:
        with open_regular(path) as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}); make it readable, or copy it again"
        ) from None
    if len(content) > _LARGEST:
        raise CheckpointError(f"{path}: larger than any configuration; copy the checkpoint again")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: not UTF-8 text; copy the checkpoint again") from None


def is_there(path: Path) -> bool:
    """Whether there is a file, or a link, pipe or folder in its place, which reading will refuse."""
    return path.exists() or path.is_symlink()


def parse_json(path: Path) -> dict[str, Any]:
    """A JSON file's table; raises CheckpointError."""
    text = read_text(path)
    try:
        content = load_json(text)
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}); copy the checkpoint again") from None
    return _table(path, content)


def parse_yaml(path: Path) -> dict[str, Any]:
    """A YAML file's table; raises CheckpointError."""
    try:
        content = yaml_files.parse_yaml(read_text(path))
    except ConfigError as error:
        raise CheckpointError(f"{path}: not YAML ({error}); copy the checkpoint again") from None
    return _table(path, content)


def _table(path: Path, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected keys and values; copy the checkpoint again")
    _check_text(path, content)
    return content


def _check_text(path: Path, content: Any) -> None:
    """Refuses half a UTF-16 pair (`\\ud800`), which no file or terminal takes."""
    seen: set[int] = set()  # YAML can refer to one value from many places
    left = [content]
    while left:
        value = left.pop()
        if isinstance(value, str):
            if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise CheckpointError(
                    f"{path}: {value[:40]!r} is not valid Unicode; copy the checkpoint again"
                )
        elif isinstance(value, dict | list) and id(value) not in seen:
            seen.add(id(value))
            left += [*value, *value.values()] if isinstance(value, dict) else value


def configuration_file(checkpoint: Path) -> Path | None:
    """A file that every writing of a checkpoint renews; None if there is no checkpoint."""
    found = (checkpoint / name for name in CONFIGURATIONS if (checkpoint / name).is_file())
    return next(found, None)
