"""JSON schemas in suites: only those that no answer of a model can keep busy."""

import json
from typing import Any


def only_json(value: Any) -> Any:
    """The value itself; raises ValueError for NaN and infinity, which no JSON can be."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("holds `.nan` or `.inf`, which no JSON is; write a number") from None
    return value


def usable_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself; raises ValueError where it is none, or may run forever."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"not a JSON schema: {error.message}") from None
    _refuse_patterns(schema)
    only_json(schema)
    return schema


def _refuse_patterns(schema: Any) -> None:
    """Raises ValueError for a keyword that is a regular expression or lies outside the schema."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ("pattern", "patternProperties"):
            raise ValueError(
                f"`{keyword}` can run forever on a model's text; use enum, const or lengths"
            )
        if keyword in ("$ref", "$dynamicRef") and not str(value).startswith("#"):
            raise ValueError(f"`{keyword}: {value}` lies outside the schema; write it out")
        if keyword in ("properties", "$defs", "dependentSchemas"):
            inner = list(value.values())
        else:
            inner = value if isinstance(value, list) else [value]
        if keyword not in ("enum", "const", "default", "examples"):
            for part in inner:
                _refuse_patterns(part)
