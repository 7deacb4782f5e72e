"""Jinja2 templates and expressions over dataset rows, in a sandbox, with undefined names as errors.

A field is a variable, and `row["…"]` is a field whose name is no identifier.

Jinja's filters are available, except those that draw at random. There are two more filters:
`regex_replace(pattern, replacement)`, which is Python's `re.sub`, and `shuffled(key)`, a list in an order
that the text `key` decides.

Any error of a template becomes one sentence with its key and its source.
"""

import contextlib
import datetime
import decimal
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, Undefined, UndefinedError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evaluation.errors import ConfigError, SourceError, kind_of, one_line, with_class
from evaluation.prefill.files import DatasetRow, check_not_binary, check_unicode


def _regex_replace(text: str, pattern: str, replacement: str) -> str:
    return re.sub(pattern, replacement, text)


def _shuffled(items: Sequence[Any], key: object) -> list[Any]:
    """Return items in an order that a text decides, the same in every prefill, as choices are shuffled."""
    drawn = list(items)
    random.Random(str(key)).shuffle(drawn)
    return drawn


def _writable(value: Any) -> Any:
    """Refuse values that Jinja would write as Python code does, as they would spoil a prompt.

    A null would become the word None, bytes `b'…'`, and a date would depend on its type in the file.
    """
    if value is None:
        raise TypeError(
            "a field that it writes is null; write `{{ field or '' }}` if that is right"
        )
    if isinstance(value, float) and math.isnan(value):
        raise TypeError("a field that it writes is not a number (NaN); leave such rows out")
    if isinstance(value, list | tuple | dict):
        raise TypeError(
            f"a field that it writes is {kind_of(value)}; write the part of it that is meant, as "
            "`{{ field | join(', ') }}`"
        )
    if isinstance(value, bytes | bytearray):
        raise TypeError("a field that it writes is binary; store it as text")
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        raise TypeError(
            f"a field that it writes is {kind_of(value)}; write `{{{{ field.isoformat() }}}}`"
        )
    if not isinstance(value, str | int | float | decimal.Decimal | Undefined):
        raise TypeError(f"what it writes is {kind_of(value)}, not a text or number")
    return value


_FILTERS = (
    *("abs", "attr", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "e"),
    *("escape", "filesizeformat", "first", "float", "forceescape", "format", "groupby", "indent"),
    *("int", "items", "join", "last", "length", "list", "lower", "map", "max", "min", "pprint"),
    *("reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr"),
    *("slice", "sort", "string", "striptags", "sum", "title", "tojson", "trim", "truncate"),
    *("unique", "upper", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"),
)
_GLOBALS = ("range", "dict", "cycler", "joiner", "namespace")

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False, finalize=_writable
)
_ENVIRONMENT.filters = {name: _ENVIRONMENT.filters[name] for name in _FILTERS}
_ENVIRONMENT.globals = {name: _ENVIRONMENT.globals[name] for name in _GLOBALS}
_ENVIRONMENT.filters |= {"regex_replace": _regex_replace, "shuffled": _shuffled}

ROW = "row"
"""The variable that has all fields."""

Render = Callable[[Mapping[str, Any]], Any]


def compile_template(key: str, source: str) -> Render:
    """Compile a template to a function from values to text; `key` is for messages.

    Raises:
        ConfigError: It does not parse.
    """
    template = _compiled(key, source, "template", _ENVIRONMENT.from_string)
    return _guarded(key, source, template.render)


def compile_expression(key: str, source: str) -> Render:
    """Compile an expression to a function from values to any value; `key` is for messages.

    Raises:
        ConfigError: It does not parse.
    """

    def parse(source: str) -> Any:
        return _ENVIRONMENT.compile_expression(source, undefined_to_none=False)

    expression = _compiled(key, source, "expression", parse)

    def evaluate(values: Mapping[str, Any]) -> Any:
        value = expression(values)
        if isinstance(value, Undefined):
            raise UndefinedError(str(value._undefined_message))
        return value

    return _guarded(key, source, evaluate)


@contextlib.contextmanager
def at_row(place: str) -> Iterator[None]:
    """Put the place of a row before the SourceErrors of the block, which handles it."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{place}: {error}") from None


def reason_of(error: BaseException) -> str:
    """Return an error's message on one line, shortened, with its class where that explains more."""
    words = one_line(error)
    if "No filter named 'random'" in words:
        return "it draws at random (`random`), but prompts must be the same whenever they are made"
    return words if words and isinstance(error, TypeError | ValueError) else with_class(error)


def _compiled(key: str, source: str, kind: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(source)
    except Exception as error:  # noqa: BLE001 - constants raise what they like
        raise ConfigError(
            f"{key}: not a Jinja2 {kind}: {reason_of(error)}; in {_shown(source)}"
        ) from None


def _guarded(key: str, source: str, function: Render) -> Render:
    def render(values: Mapping[str, Any]) -> Any:
        try:
            return function(values)
        except UndefinedError as error:
            fields = ", ".join(sorted(str(name) for name in values if name != ROW))[:500]
            raise SourceError(
                f"{key}: {str(error.message)[:300]}, used by {_shown(source)}; the fields are {fields}"
            ) from None
        except Exception as error:  # noqa: BLE001 - its functions raise what they like
            raise SourceError(f"{key}: {_shown(source)} fails: {reason_of(error)}") from None

    return render


def _shown(source: str) -> str:
    return repr(source if len(source) <= 300 else f"{source[:300]}…")


class RowTemplates:
    """The templates of a task, applied to each row after the variables of `let`.

    Args:
        key: The task's key in the suite, with its section, for messages.
        texts: Templates by name; None: the task does not have it.
        expressions: Expressions by name; None: the task does not have it.
    """

    def __init__(
        self,
        key: str,
        let: Mapping[str, str],
        texts: Mapping[str, str | None],
        expressions: Mapping[str, str | None],
    ) -> None:
        given = {name: source for name, source in texts.items() if source is not None}
        computed = {name: source for name, source in expressions.items() if source is not None}
        self.texts = {name: compile_template(f"{key}.{name}", s) for name, s in given.items()}
        self.expressions = {n: compile_expression(f"{key}.{n}", s) for n, s in computed.items()}
        self._let = {name: compile_expression(f"{key}.let.{name}", s) for name, s in let.items()}
        written = (f"{{{{ {source} }}}}" for source in (*computed.values(), *let.values()))
        self._fields = fields_of(*given.values(), *written)

    def values(self, row: DatasetRow) -> dict[str, Any]:
        """Return a row's fields and the variables of `let`, for templates.

        Raises:
            SourceError: A field that they use is binary.
        """
        values = values_of(row)
        check_not_binary({name: values[name] for name in self._fields & values.keys()})
        for variable, expression in self._let.items():
            values[variable] = expression(values)
        return values

    def text(self, name: str, values: Mapping[str, Any]) -> str | None:
        """Return a template's text, checked to be valid Unicode; None if there is no such template.

        `values` are those that `values` returned, and more if the template needs them.
        """
        if name not in self.texts:
            return None
        text = str(self.texts[name](values))
        check_unicode(text)
        return text


def fields_of(*sources: str) -> set[str]:
    """Return the names that compiled templates use and do not define.

    `row` itself is among them only where it is used as a whole.
    """
    fields: set[str] = set()
    for source in sources:
        tree = _ENVIRONMENT.parse(source)
        fields |= meta.find_undeclared_variables(tree)
        named = _named_fields(tree)
        uses = sum(name.name == ROW for name in tree.find_all(nodes.Name))
        fields |= set(named)
        if len(named) == uses:
            fields.discard(ROW)
    return fields


def _named_fields(tree: nodes.Template) -> list[str]:
    """Return the fields that a template reads as `row["…"]` or `row.…`, each as often as it does."""
    subscripts = [
        node.arg.value
        for node in tree.find_all(nodes.Getitem)
        if _is_row(node.node) and isinstance(node.arg, nodes.Const)
    ]
    dotted = [
        node.attr
        for node in tree.find_all(nodes.Getattr)
        if _is_row(node.node) and not hasattr(dict, node.attr)
    ]
    return [name for name in (*subscripts, *dotted) if isinstance(name, str)]


def _is_row(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.name == ROW


def values_of(row: DatasetRow) -> dict[str, Any]:
    """Return what templates can use of a row: its fields, and the whole as `row`.

    The row's own field `row` would stay.
    """
    return {ROW: row, **row}
