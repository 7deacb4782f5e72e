"""What is generated from the settings is up to date, and examples of the README hold."""

import json
import re
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

from evaluation.settings.config import Config, validate_config
from evaluation.settings.schema import PAGE, SCHEMAS, keys_page
from evaluation.settings.suites import Suite
from evaluation.settings.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parents[2]
REMEDY = "run `python -m evaluation schema` and commit what it writes"


def test_what_is_generated_is_in_step() -> None:
    assert (ROOT / PAGE).read_text() == keys_page(), REMEDY
    for path, model in SCHEMAS.items():
        assert json.loads((ROOT / path).read_text()) == model.model_json_schema(), REMEDY


def test_editors_accept_what_is_shipped() -> None:
    for model, folder in ((Config, "config"), (Suite, "task_suites")):
        validator = Draft202012Validator(model.model_json_schema())
        validator.check_schema(validator.schema)
        for path in (ROOT / folder).glob("*.yaml"):
            assert list(validator.iter_errors(read_yaml(path))) == [], path


def test_configurations_in_the_documentation_are_accepted() -> None:
    pages = [ROOT / "config/README.md", *(ROOT / "docs").glob("*.md")]
    blocks = [re.findall(r"(?s)```yaml\n(.*?)```", page.read_text()) for page in pages]
    examples = [yaml.safe_load(block) for blocks_of in blocks for block in blocks_of]
    assert len(examples) > 12
    stage = {"checkpoints": "ckpts", "steps": "all", "suites": ["stage1_cf_core"]}
    for example in examples:
        if example.keys() <= Config.model_fields.keys():
            given = example.get("stages", {"stage1": {}})
            stages = {name: {**stage, **keys} for name, keys in given.items()}
            validate_config({"results": "r", "cache": "c", **example, "stages": stages}, "a page")
        else:
            Suite.model_validate(example)
