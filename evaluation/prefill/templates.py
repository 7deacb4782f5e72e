"""Jinja2 templates and expressions over dataset rows, in a sandbox, with undefined names as errors.

A field is a variable, and `row["…"]` is a field whose name is no identifier.

Jinja's filters are available, except `random`. There are two more filters:
`regex_replace(pattern, replacement)`, which is Python's `re.sub`, and `shuffled(key)`, a list in an order
that the text `key` decides.

Any error of a template becomes one sentence with its key and its source.
"""

import contextlib
import decimal
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, Undefined, UndefinedError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evaluation.errors import ConfigError, SourceError, kind_of, with_class
from evaluation.files import is_unicode
from evaluation.prefill.sources import DatasetRow


def _regex_replace(text: str, pattern: str, replacement: str) -> str:
    return re.sub(pattern, replacement, text)


def _shuffled(items: Sequence[Any], key: object) -> list[Any]:
    """Return items in an order that a text decides, the same in every prefill, as choices are shuffled."""
    drawn = list(items)
    random.Random(str(key)).shuffle(drawn)
    return drawn


def _writable(value: Any) -> Any:
    """Refuse values that Jinja would write as Python code does, as they would spoil a prompt."""
    if isinstance(value, float) and math.isnan(value):
        raise TypeError("a field that it writes is not a number (NaN); leave such rows out")
    if isinstance(value, str | int | float | decimal.Decimal | Undefined):
        return value
    raise TypeError(
        f"a field that it writes is {kind_of(value)}; write a text or number, as `{{{{ field or '' }}}}`, "
        "`{{ field | join(', ') }}` or `{{ field.isoformat() }}`"
    )


class _Environment(ImmutableSandboxedEnvironment):
    """Refuses a negative number as an index, such as a hidden label: Python would count from the end."""

    def _generate(self, source: nodes.Template, *rest: Any, **more: Any) -> str:
        for item in list(source.find_all(nodes.Getitem)):
            if not isinstance(item.arg, nodes.Const | nodes.Neg | nodes.Slice):
                line = item.lineno
                item.arg = nodes.Filter(item.arg, "_index", [], [], None, None, lineno=line)
        return super()._generate(source, *rest, **more)


def _index(value: Any) -> Any:
    if isinstance(value, int) and value < 0:
        raise IndexError(f"the index {value} is negative, as hidden labels are")
    return value


_ENVIRONMENT = _Environment(
    undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False, finalize=_writable
)
del _ENVIRONMENT.filters["random"], _ENVIRONMENT.globals["lipsum"]
_ENVIRONMENT.filters |= {"regex_replace": _regex_replace, "shuffled": _shuffled, "_index": _index}

Render = Callable[[Mapping[str, Any]], Any]


def compile_template(key: str, source: str) -> Render:
    """Compile a template to a function from values to text; `key` is for messages."""
    return _guarded(key, source, "template", lambda: _ENVIRONMENT.from_string(source).render)


def compile_expression(key: str, source: str) -> Render:
    """Compile an expression to a function from values to any value; `key` is for messages."""

    def compiled() -> Render:
        expression = _ENVIRONMENT.compile_expression(source, undefined_to_none=False)

        def evaluate(values: Mapping[str, Any]) -> Any:
            value = expression(values)
            if isinstance(value, Undefined):
                raise UndefinedError(str(value._undefined_message))
            return value

        return evaluate

    return _guarded(key, source, "expression", compiled)


@contextlib.contextmanager
def at_row(place: str) -> Iterator[None]:
    """Put the place of a row before the SourceErrors of the block, which handles it."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{place}: {error}") from None


def _guarded(key: str, source: str, kind: str, compiled: Callable[[], Render]) -> Render:
    shown = repr(source if len(source) <= 300 else f"{source[:300]}…")
    try:
        function = compiled()
    except Exception as error:  # noqa: BLE001 - constants raise what they like
        raise ConfigError(f"{key}: not a Jinja2 {kind}: {with_class(error)}; in {shown}") from None

    def render(values: Mapping[str, Any]) -> Any:
        try:
            return function(values)
        except UndefinedError as error:
            fields = ", ".join(sorted(str(name) for name in values if name != "row"))[:500]
            raise SourceError(
                f"{key}: {str(error.message)[:300]}, used by {shown}; the fields are {fields}"
            ) from None
        except Exception as error:  # noqa: BLE001 - its functions raise what they like
            raise SourceError(f"{key}: {shown} fails: {with_class(error)}") from None

    return render


class RowTemplates:
    """The templates and expressions of a task by name, applied to each row after the variables of `let`."""

    def __init__(
        self,
        key: str,
        let: Mapping[str, str],
        texts: Mapping[str, str | None],
        expressions: Mapping[str, str | None],
    ) -> None:
        self.texts = {
            n: compile_template(f"{key}.{n}", s) for n, s in texts.items() if s is not None
        }
        self.expressions = {
            n: compile_expression(f"{key}.{n}", s) for n, s in expressions.items() if s is not None
        }
        self._let = {name: compile_expression(f"{key}.let.{name}", s) for name, s in let.items()}

    def values(self, row: DatasetRow) -> dict[str, Any]:
        """Return a row's fields and the variables of `let`, for templates."""
        values = values_of(row)
        for variable, expression in self._let.items():
            values[variable] = expression(values)
        return values

    def text(self, name: str, values: Mapping[str, Any]) -> str | None:
        """Return a template's text, checked to be valid Unicode; None if there is no such template."""
        if name not in self.texts:
            return None
        text = str(self.texts[name](values))
        check_unicode(text)
        return text


def reads_row(source: str) -> bool:
    """Return whether a template that compiles reads anything of the row, and not the candidate alone."""
    used = meta.find_undeclared_variables(_ENVIRONMENT.parse(source))
    return bool(used - {"choice", "index"})


def values_of(row: DatasetRow) -> dict[str, Any]:
    """Return what templates can use of a row: its fields, and all of it as `row`, if no field is."""
    return {"row": row, **row}


def check_unicode(text: str) -> None:
    """Check that a text is valid Unicode: JSON can spell half a UTF-16 pair, which no tokenizer accepts."""
    if not is_unicode(text):
        raise SourceError("not valid Unicode; repair the data")
