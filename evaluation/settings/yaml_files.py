"""Read YAML files so that nothing a user wrote is lost, guessed at, or able to crash Python.

Dates stay text. A key given twice is an error, and so is a number that YAML reads otherwise than it looks:
`010` is 8 there, and `1:20` is 80. Deeply nested files are refused before they are
built, as the C parser would overflow its stack; files with too many aliased values, afterwards.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import ConfigError
from evaluation.wording import kind_of, near_path, one_line

MAX_BYTES = 32 * 2**20
MAX_DEPTH = 100
MAX_VALUES = 2_000_000
"""Most values of a file; a value counts as often as aliases repeat it."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader reads a list of thousands of steps nine times faster; every job reads one."""

_KINDS = ("bool", "float", "int", "map", "null", "seq", "str")
"""Kinds of values; a tag of another kind (`!!binary`, `!!set`) is refused."""


_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_NOT_AS_IT_LOOKS = re.compile(r"[-+]?0[0-9_]|[-+]?[0-9_]+:")
"""Octal and sexagesimal numbers of YAML 1.1."""


class _Loader(_LOADER):  # type: ignore[misc]
    """A loader that reads dates as text and refuses a key given twice."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in _LOADER.yaml_implicit_resolvers.items()
    }

    yaml_constructors = {
        tag: construct
        for tag, construct in _LOADER.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in _KINDS
    }

    def construct_scalar(self, node: Any) -> Any:
        """Return a scalar's text; refuse numbers with a leading zero or a colon."""
        is_number = node.tag in _NUMBERS and not node.style
        if is_number and _NOT_AS_IT_LOOKS.match(node.value):
            raise ConfigError(
                f"line {node.start_mark.line + 1}: YAML reads {node.value} as {_as_read(node)}; write "
                f"'{node.value}' in quotes if it is text, else the number without zeros before it or colons"
            )
        return super().construct_scalar(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Build a mapping.

        Args:
            deep: Whether PyYAML builds the values at once.

        Returns:
            The mapping.

        Raises:
            ConfigError: When a key appears twice.
        """
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


def _as_read(node: Any) -> Any:
    """Return the number that YAML 1.1 makes of a scalar."""
    loader = yaml.SafeLoader("")
    return loader.construct_object(yaml.ScalarNode(node.tag, node.value))


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
        _refuse_deep(text)
        content = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"not valid YAML: {_where(error)}{_tabs(text, error)}; correct it there"
        ) from None
    except ConfigError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # a value that is not of its tag's type, or an integer of thousands of digits
        raise ConfigError(
            f"not valid YAML: a value that is not of the type that its tag names ({one_line(error)}); "
            "correct the value, or take the tag away"
        ) from None
    if content is None or content == {}:
        raise ConfigError("is empty; expected keys and values")
    if "*" in text and "&" in text:
        _refuse_repeated(content)
    return content


def _read_text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"no such file{near_path(path, Path.is_file)}; correct the path"
        ) from None
    except IsADirectoryError:
        raise ConfigError("is a folder; a YAML file is expected") from None
    except PermissionError:
        raise ConfigError(
            "you may not read it; ask its owner, or name a file of your own (a run's copy of its "
            "configuration is for the user who started it alone)"
        ) from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES >> 20} MiB; is it a YAML file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from None


def _refuse_deep(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark else "?"
            raise ConfigError(f"line {line}: nested more than {MAX_DEPTH} levels deep; flatten it")


def _refuse_repeated(content: Any) -> None:
    """Refuse content that becomes huge, or endless, once its aliases are followed."""
    left, count = [content], 0
    while left:
        count += 1
        if count > MAX_VALUES:
            raise ConfigError(
                f"its aliases (`*name`) repeat more than {MAX_VALUES:,} values, or one stands inside "
                "what it repeats; write them out"
            )
        value = left.pop()
        left += (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )


def _where(error: yaml.YAMLError) -> str:
    return re.sub(r'in "<(?:unicode|byte) string>", ', "", " ".join(str(error).split()))


def _tabs(text: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    lines = text.splitlines()
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line]:
        return " (YAML is indented by spaces; there is a tab in this line)"
    return ""
