"""What is generated from the settings stands in the repository as it would be generated now."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from evaluation.errors import ConfigError
from evaluation.settings.key_tables import key_rows
from evaluation.settings.schema import README, SCHEMAS, generated_readme, write_generated

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
