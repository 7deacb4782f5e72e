"""Schemas and tables are as the settings would generate them, and the loaders keep every bound in them."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from evaluation.errors import ConfigError
from evaluation.settings.config import load_config
from evaluation.settings.schema import README, SCHEMAS, generated_readme, key_rows, write_generated
from evaluation.settings.suites import load_suite

ROOT = Path(__file__).resolve().parents[2]
REMEDY = "run `python -m evaluation schema` and commit what it writes"


@pytest.mark.parametrize("path", list(SCHEMAS), ids=str)
def test_schema_is_in_step(path: Path) -> None:
    assert json.loads((ROOT / path).read_text()) == SCHEMAS[path].model_json_schema(), REMEDY


def test_table_of_keys_is_in_step() -> None:
    text = (ROOT / README).read_text()
    assert generated_readme(text) == text, REMEDY


@pytest.mark.parametrize("model", SCHEMAS.values())
def test_every_key_is_explained(model: type[BaseModel]) -> None:
    rows = list(key_rows(model))
    assert len(rows) > 40
    assert [key for key, _, description in rows if not description] == []


def test_nothing_is_written_where_the_project_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no config/README\.md; name the root"):
        write_generated(tmp_path)
    assert not list(tmp_path.iterdir())


Schema = dict[str, Any]
Value = Callable[[Any], Any]
"""What a whole file holds when something stands at the place in question."""

TEXTS = {
    "tests": "assert f() == 1",
    "function": "f",
    "form": "{gold}",
    "pattern": "x",
    "role": "user",
    "results": "r",
    "cache": "c",
}
"""By key, text that is right where `x` is not."""


@dataclass(frozen=True)
class Bound:
    """One bound of one key: a file that goes beyond it, and what the refusal must hold."""

    key: str
    rule: str
    content: Any
    words: str


class Walk:
    """All places of a schema, each with a file that holds nothing but the way to it."""

    def __init__(self, root: Schema) -> None:
        self._definitions = root["$defs"]
        self._seen: set[str] = set()
        self.numbers: list[tuple[str, Schema]] = []

    def bounds(self, schema: Schema | bool, key: str, around: Value) -> Iterator[Bound]:
        if isinstance(schema, bool):
            return
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in self._seen:
                self._seen.add(name)
                yield from self.bounds(self._definitions[name], key, around)
            return
        for part in schema.get("anyOf") or schema.get("oneOf") or ():
            yield from self.bounds(part, key, around)
        if schema.get("type") in ("integer", "number"):
            self.numbers.append((key, schema))
        for rule, (beyond, words) in RULES.items():
            if rule in schema:
                value = beyond(schema[rule], schema)
                yield Bound(key, rule, around(value), words.format(schema[rule]))
        yield from self._inside(schema, key, around)

    def _inside(self, schema: Schema, key: str, around: Value) -> Iterator[Bound]:
        base = self.example(schema) if "properties" in schema else {}
        for name, inner in schema.get("properties", {}).items():
            place = f"{key}.{name}".removeprefix(".")
            yield from self.bounds(inner, place, _within(around, base, name))
        inner = schema.get("additionalProperties")
        if isinstance(inner, dict) and inner:
            yield from self.bounds(inner, f"{key}.one", _within(around, {}, "one"))
        if "items" in schema:
            yield from self.bounds(schema["items"], f"{key}.0", lambda value: around([value]))

    def example(self, schema: Schema, key: str = "") -> Any:
        """The least that a schema accepts, but for what only validators in Python know."""
        if "$ref" in schema:
            return self.example(self._definitions[schema["$ref"].rpartition("/")[2]], key)
        if "const" in schema:
            return schema["const"]
        for several in ("enum", "anyOf", "oneOf"):
            if several in schema:
                first = schema[several][0]
                return TEXTS.get(key, first) if several == "enum" else self.example(first, key)
        kind = schema.get("type")
        if kind == "object":
            given = schema.get("properties", {})
            needed = {name: self.example(given[name], name) for name in schema.get("required", ())}
            if needed or not schema.get("minProperties"):
                return needed
            return {"one": self.example(schema["additionalProperties"], key)}
        if kind == "array":
            return [self.example(schema["items"], key)] * schema.get("minItems", 0)
        others = {"integer": 4, "number": 0.5, "boolean": True, "string": TEXTS.get(key, "x")}
        return others.get(str(kind), "x")


def _within(around: Value, base: Schema, name: str) -> Value:
    return lambda value: around({**base, name: value})


RULES: dict[str, tuple[Callable[[Any, Schema], Any], str]] = {
    "minimum": (lambda bound, schema: bound - 1, "greater than or equal to {}"),
    "exclusiveMinimum": (lambda bound, schema: bound, "greater than {}"),
    "maximum": (lambda bound, schema: bound + 1, "less than or equal to {}"),
    "exclusiveMaximum": (lambda bound, schema: bound, "less than {}"),
    "minLength": (lambda bound, schema: "x" * (bound - 1), "at least {} character"),
    "minItems": (lambda bound, schema: [], "at least {} item"),
    "minProperties": (lambda bound, schema: {}, "at least {} item"),
}
STEPS = "stages.one.steps"
BY_HAND = {
    (f"{STEPS}.0", "minimum"): (STEPS, "is no step"),
    (f"{STEPS}.0", "exclusiveMaximum"): (STEPS, "is no step"),
    (f"{STEPS}.every", "exclusiveMinimum"): (STEPS, "0 is no whole number"),
}
"""What is said of keys that are read by hand."""


def _walked(path: Path) -> tuple[Walk, list[Bound]]:
    schema = SCHEMAS[path].model_json_schema()
    walk = Walk(schema)
    return walk, list(walk.bounds(schema, "", lambda value: value))


WALKS = {path.name.partition(".")[0]: _walked(path) for path in SCHEMAS}
BOUNDS = [(file, bound) for file, (_, bounds) in WALKS.items() for bound in bounds]


@pytest.mark.parametrize(
    ("file", "bound"), BOUNDS, ids=[f"{file}:{bound.key}:{bound.rule}" for file, bound in BOUNDS]
)
def test_one_beyond_a_bound_is_refused(tmp_path: Path, file: str, bound: Bound) -> None:
    path = tmp_path / f"{file}.yaml"
    path.write_text(yaml.safe_dump(bound.content))
    with pytest.raises(ConfigError) as caught:
        load_config(path) if file == "config" else load_suite(tmp_path, file)
    key, words = BY_HAND.get((bound.key, bound.rule), (bound.key, bound.words))
    between = r"(?:\.\w+)?\."  # the kind of a check
    assert re.search(rf"yaml: {between.join(key.split('.'))}: .*{words}", str(caught.value))


@pytest.mark.parametrize("file", WALKS)
def test_every_number_has_bounds_on_both_sides(file: str) -> None:
    numbers = WALKS[file][0].numbers
    assert len(numbers) > 8
    below, above = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
    assert [key for key, one in numbers if not (below & one.keys() and above & one.keys())] == []


def test_every_rule_of_the_schemas_is_tried() -> None:
    """No other kind of bound than those that the walk goes beyond."""
    known = {"pattern", "maxLength", "maxItems", "multipleOf", "maxProperties", "uniqueItems"}
    for path in SCHEMAS:
        left: list[Any] = [SCHEMAS[path].model_json_schema()]
        while left:
            part = left.pop()
            if isinstance(part, dict) and isinstance(part.get("type"), str):
                assert not known & part.keys()
            left += (
                part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
            )
