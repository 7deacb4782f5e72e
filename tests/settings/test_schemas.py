"""Schemas and tables are as the settings would generate them, and every number in them is bounded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evaluation.settings.schema import README, SCHEMAS, generated_readme, key_rows

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


def parts(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All mappings of a schema, with the place of each."""
    if isinstance(value, dict):
        yield key, value
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in inner:
        if isinstance(part, dict | list):
            yield from parts(part, f"{key}.{name}")


@pytest.mark.parametrize("model", SCHEMAS.values())
def test_every_number_has_bounds_on_both_sides(model: type[BaseModel]) -> None:
    found = list(parts(model.model_json_schema()))
    numbers = {key: one for key, one in found if one.get("type") in ("integer", "number")}
    assert len(numbers) > 8
    below, above = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
    assert [
        k for k, one in numbers.items() if not (below & one.keys() and above & one.keys())
    ] == []
