"""Read YAML files so that nothing a user wrote is lost or guessed at.

Dates stay text. A key given twice is an error.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import ConfigError, kind_of, one_line, reason_of

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader reads a list of thousands of steps nine times faster; every job reads one."""


class _Loader(_LOADER):  # type: ignore[misc]
    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in _LOADER.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name, times in Counter(key.value for key in keys).most_common(1):
            if times > 1:
                lines = [key.start_mark.line + 1 for key in keys if key.value == name]
                raise ValueError(f"the key {name!r} stands in lines {lines}")
        return super().construct_mapping(node, deep=deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping from a file; raise ConfigError on a mistake."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8-sig"))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; correct the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({reason_of(error)}); correct it") from None


def parse_yaml(text: str) -> dict[str, Any]:
    try:
        content = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"not valid YAML: {one_line(error)}; correct it there") from None
    if not isinstance(content, dict) or not content:
        found = kind_of(content) if content else "empty"
        raise ConfigError(f"expected keys and values, as in `key: value`, but it is {found}")
    return content
