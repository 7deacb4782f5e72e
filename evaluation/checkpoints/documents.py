"""JSON and YAML that others wrote, read so that nothing in them can hang, crash or be overlooked.

A file is refused if it is no plain file, larger than any configuration, no UTF-8, gives a key
twice, or holds text that cannot be written down again. Every refusal names the file.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import CheckpointError
from evaluation.files import open_regular

_LARGEST = 64 << 20
"""Bytes; a configuration has some thousand, the index of a large model some million."""

_YAML_ERRORS = (
    yaml.YAMLError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What PyYAML raises; all but the first for a value that is not of the type that it is tagged."""


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
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON ({error}); copy the checkpoint again") from None
    return _table(path, content)


def parse_yaml(path: Path) -> dict[str, Any]:
    """A YAML file's table; raises CheckpointError."""
    text = read_text(path)
    try:
        content = yaml.load(text, Loader=_UniqueKeys)
    except _YAML_ERRORS as error:
        reason = " ".join(str(error).split())[:300]
        raise CheckpointError(f"{path}: not YAML ({reason}); copy the checkpoint again") from None
    return _table(path, content)


def load_json(text: str | bytes) -> Any:
    """Parses JSON; raises ValueError also for a key that is given twice, or RecursionError."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it gives {twice!r} twice")
    return table


class _UniqueKeys(yaml.SafeLoader):
    """A safe loader that refuses a key that is given twice."""


def _unique_mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        line = node.start_mark.line + 1
        raise ValueError(f"the table at line {line} gives {twice!r} twice")
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_UniqueKeys.add_constructor("tag:yaml.org,2002:map", _unique_mapping)


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
