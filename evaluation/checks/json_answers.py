"""Checks of JSON answers."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, JsonValue

from evaluation.checks.declared import Flag, MatchCase, check
from evaluation.checks.fences import read_fences, whole_fence
from evaluation.checks.text import plain
from evaluation.files import load_json

_SLOW = re.compile(r'"(pattern|patternProperties|uniqueItems)":')
"""Keywords whose time has no bound: regular expressions, and comparison of all pairs."""
_ELSEWHERE = re.compile(r'"\$(?:dynamicR|r)ef": "(?!#)')


def _usable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema; raise ValueError if it is invalid, refers elsewhere, or may run forever."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"not a JSON schema: {error.message}") from None
    written = json.dumps(schema, default=str)
    if slow := _SLOW.search(written):
        raise ValueError(
            f"`{slow[1]}` can run forever on a model's text; use enum, const, lengths or json_equals"
        )
    if _ELSEWHERE.search(written):
        raise ValueError("`$ref` lies outside the schema; write it out")
    return schema


Schema = Annotated[dict[str, Any], AfterValidator(_usable), "JSON Schema (2020-12) of the value."]
Fenced = Annotated[Flag, "One fence may be around it."]
Value = Annotated[JsonValue, "Keys, order of arrays, types and every sign of a text count."]


@check("json")
def strict_json(text: str, matches: Schema, may_be_fenced: Fenced = False) -> bool:
    """the whole answer is one JSON value, without prose around it."""
    from jsonschema import Draft202012Validator

    fence = whole_fence(text) if may_be_fenced else None
    part = fence.content if fence and fence.tag in ("", "json") else text
    try:
        return bool(Draft202012Validator(matches).is_valid(load_json(part, finite=True)))
    except (ValueError, RecursionError, ArithmeticError):  # too deep, too long numbers
        return False


@check("instruction")
def json_equals(text: str, value: Value, match_case: MatchCase = False) -> bool:
    """the JSON of the answer, fenced or not, is this value."""
    fences = read_fences(text)
    part = fences[0].content if len(fences) == 1 else text
    try:
        found = _comparable(load_json(part, finite=True), match_case)
    except (ValueError, RecursionError):
        return False
    return bool(found == _comparable(value, match_case))


def _comparable(value: Any, match_case: bool) -> Any:
    """Return a form that is equal for the same values: 1.0 is 1, but true is not."""
    if isinstance(value, Mapping):
        return {key: _comparable(inner, match_case) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(inner, match_case) for inner in value]
    if isinstance(value, str):
        read = plain(value).strip()
        return read if match_case else read.casefold()
    return ("boolean", value) if isinstance(value, bool) else value
