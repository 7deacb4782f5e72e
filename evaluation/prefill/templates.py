"""Jinja2 templates and expressions over dataset rows, in a sandbox, with undefined names as errors.

Filters beyond Jinja's own: `regex_replace(pattern, replacement)`, which is Python's `re.sub`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, UndefinedError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evaluation.errors import ConfigError, SourceError


def _regex_replace(text: str, pattern: str, replacement: str) -> str:
    return re.sub(pattern, replacement, text)


def _not_null(value: Any) -> Any:
    """Jinja would write a null field as the word None, which a model would then be asked about."""
    if value is None:
        raise TypeError(
            "a field that it writes is null; write `{{ field or '' }}` if that is right"
        )
    return value


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False, finalize=_not_null
)
_ENVIRONMENT.filters["regex_replace"] = _regex_replace

Render = Callable[[Mapping[str, Any]], Any]


def compile_template(key: str, source: str) -> Render:
    """A template as a function from values to text; raises ConfigError if it does not parse."""
    try:
        template = _ENVIRONMENT.from_string(source)
    except TemplateError as error:
        raise ConfigError(f"{key}: not a Jinja2 template: {error}; in {source!r}") from None
    return _guarded(key, source, template.render)


def compile_expression(key: str, source: str) -> Render:
    """An expression as a function from values to a value of any type; raises ConfigError."""
    try:
        expression = _ENVIRONMENT.compile_expression(source, undefined_to_none=False)
    except TemplateError as error:
        raise ConfigError(f"{key}: not a Jinja2 expression: {error}; in {source!r}") from None

    def evaluate(values: Mapping[str, Any]) -> Any:
        value = expression(values)
        if isinstance(value, Undefined):
            raise UndefinedError(str(value._undefined_message))
        return value

    return _guarded(key, source, evaluate)


def _guarded(key: str, source: str, function: Render) -> Render:
    def render(values: Mapping[str, Any]) -> Any:
        try:
            return function(values)
        except UndefinedError as error:
            fields = ", ".join(sorted(map(str, values)))
            raise SourceError(
                f"{key}: {error.message}, used by {source!r}; the fields are {fields}"
            ) from None
        except (TemplateError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise SourceError(f"{key}: {source!r} fails: {error}") from None

    return render


def fields_of(*sources: str) -> set[str]:
    """Names that templates use and do not define themselves."""
    return {
        name
        for source in sources
        for name in meta.find_undeclared_variables(_ENVIRONMENT.parse(source))
    }
