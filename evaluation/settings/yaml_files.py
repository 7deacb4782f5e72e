"""Read YAML files so that nothing a user wrote is lost or guessed at.

Dates stay text. A key given twice is an error.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import ConfigError
from evaluation.wording import kind_of, near_path

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader reads a list of thousands of steps nine times faster; every job reads one."""


class _Loader(_LOADER):  # type: ignore[misc]
    """A loader that reads dates as text and refuses a key given twice."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in _LOADER.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Build a mapping; raise ConfigError for a key that appears twice."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                raise ConfigError(
                    f"line {line}: the key {key.value!r} stands in line {lines[key.value]} already; "
                    "remove one of them"
                )
            lines[key.value] = line
        return super().construct_mapping(node, deep=deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping from a file; dates stay text.

    Raises:
        ConfigError: It cannot be read; names the file, the line and what is wrong.
    """
    try:
        return parse_yaml(_read_text(path))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_yaml(text: str) -> dict[str, Any]:
    """Return the mapping that a text holds; dates stay text.

    Raises:
        ConfigError: It is no such mapping; the caller adds the file's name.
    """
    content = _parsed(text)
    if not isinstance(content, dict):
        raise ConfigError(
            f"expected keys and values at the top level, but it is {kind_of(content)}; write `key: value`"
        )
    return content


def read_yaml_value(path: Path) -> Any:
    """Read a YAML or JSON file that may hold a list.

    Raises:
        ConfigError: It cannot be read or is empty; names the file, the line and what is wrong.
    """
    try:
        return _parsed(_read_text(path))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _parsed(text: str) -> Any:
    """Return the value that a text holds; raise ConfigError for text that is not YAML, or is empty."""
    try:
        content = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"not valid YAML: {_where(error)}; correct it there") from None
    if content is None or content == {}:
        raise ConfigError("is empty; expected keys and values")
    return content


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            f"no such file{near_path(path, Path.is_file)}; correct the path"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror}); correct the path") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from None


def _where(error: Exception) -> str:
    return re.sub(r'in "<(?:unicode|byte) string>", ', "", " ".join(str(error).split()))
