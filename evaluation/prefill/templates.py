"""Jinja2 templates and expressions over dataset rows, in a sandbox, with undefined names as errors.

Filters beyond Jinja's own: `regex_replace(pattern, replacement)`, which is Python's `re.sub`.

Whatever a template raises becomes one sentence with its key and its source. What it may take of
time and memory is limited by who calls it for a row (`row_limits`).
"""

import datetime
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import StrictUndefined, Undefined, UndefinedError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evaluation.errors import ConfigError, SourceError
from evaluation.prefill.limits import OutOfTime, row_limits


def _regex_replace(text: str, pattern: str, replacement: str) -> str:
    return re.sub(pattern, replacement, text)


def _writable(value: Any) -> Any:
    """Refuses what Jinja would write as Python does, for a model to be asked about.

    A null would become the word None, bytes `b'…'`, a date whatever its type in the file makes it.
    """
    if value is None:
        raise TypeError(
            "a field that it writes is null; write `{{ field or '' }}` if that is right"
        )
    if isinstance(value, float) and math.isnan(value):
        raise TypeError("a field that it writes is not a number (NaN); leave such rows out")
    if isinstance(value, list | tuple | dict):
        raise TypeError(
            f"a field that it writes is a {type(value).__name__}; write what of it is meant, such as "
            "`{{ field | join(', ') }}`"
        )
    if isinstance(value, bytes | bytearray):
        raise TypeError("a field that it writes is binary; store it as text")
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        raise TypeError(
            f"a field that it writes is a {type(value).__name__}; write `{{{{ field.isoformat() }}}}`"
        )
    return value


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False, finalize=_writable
)
_ENVIRONMENT.filters["regex_replace"] = _regex_replace

_LONGEST = 1 << 26
"""Characters that one row may become; more would take the tokenizer minutes."""

Render = Callable[[Mapping[str, Any]], Any]


def compile_template(key: str, source: str) -> Render:
    """A template as a function from values to text; raises ConfigError if it does not parse."""
    template = _compiled(key, source, "template", _ENVIRONMENT.from_string)
    return _guarded(key, source, template.render)


def compile_expression(key: str, source: str) -> Render:
    """An expression as a function from values to a value of any type; raises ConfigError."""

    def parse(source: str) -> Any:
        return _ENVIRONMENT.compile_expression(source, undefined_to_none=False)

    expression = _compiled(key, source, "expression", parse)

    def evaluate(values: Mapping[str, Any]) -> Any:
        value = expression(values)
        if isinstance(value, Undefined):
            raise UndefinedError(str(value._undefined_message))
        return value

    return _guarded(key, source, evaluate)


def _compiled(key: str, source: str, kind: str, parse: Callable[[str], Any]) -> Any:
    """What Jinja makes of a source; it computes constants at once, so within a row's limits."""
    try:
        with row_limits():
            return parse(source)
    except (Exception, OutOfTime) as error:  # noqa: BLE001 - constants raise what they like
        raise ConfigError(
            f"{key}: not a Jinja2 {kind}: {reason_of(error)}; in {_shown(source)}"
        ) from None


def _guarded(key: str, source: str, function: Render) -> Render:
    def render(values: Mapping[str, Any]) -> Any:
        try:
            value = function(values)
            if isinstance(value, str) and len(value) > _LONGEST:
                raise ValueError(f"it writes {len(value):,} characters for one row")
            return value
        except UndefinedError as error:
            fields = ", ".join(sorted(map(str, values)))[:500]
            raise SourceError(
                f"{key}: {str(error.message)[:300]}, used by {_shown(source)}; the fields are {fields}"
            ) from None
        except (Exception, OutOfTime) as error:  # noqa: BLE001 - its functions raise what they like
            raise SourceError(f"{key}: {_shown(source)} fails: {reason_of(error)}") from None

    return render


def _shown(source: str) -> str:
    return repr(source if len(source) <= 300 else f"{source[:300]}…")


def reason_of(error: BaseException) -> str:
    """An error in words, on one line; some have none."""
    if isinstance(error, MemoryError):
        return "it takes more than a gigabyte of memory for one row"
    if isinstance(error, SourceError):
        return str(error)
    words = " ".join(str(error).split())[:300]
    known = isinstance(error, OutOfTime | TypeError | ValueError)
    return words if words and known else f"{type(error).__name__}: {words}".removesuffix(": ")


def expression_fields(*sources: str) -> set[str]:
    """Names that expressions use."""
    return fields_of(*(f"{{{{ {source} }}}}" for source in sources))


def fields_of(*sources: str) -> set[str]:
    """Names that templates use and do not define themselves."""
    return {
        name
        for source in sources
        for name in meta.find_undeclared_variables(_ENVIRONMENT.parse(source))
    }
