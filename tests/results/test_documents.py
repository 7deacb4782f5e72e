"""What is generated from the models of results stands in the repository as it would be now."""

import json

import jsonschema
import pytest

from evaluation.reporting.comparison import write_runs
from evaluation.results.columns import MEASURED
from evaluation.results.documents import FOLDER, LIST, documents, listing, tables
from evaluation.results.tier_files import TaskEntry, TaskMeans
from evaluation.runs.compare import compare_runs
from evaluation.runs.find import find_run
from evaluation.runs.matching import Matching
from evaluation.settings.plan import StagePlan
from evaluation.settings.schema import key_rows
from evaluation.settings.tiers import TIERS
from tests.conftest import ROOT

AGAIN = "run `python -m evaluation schema` and commit what it writes"


@pytest.mark.parametrize("name", list(documents()))
def test_schema_is_in_step(name: str) -> None:
    _, model = documents()[name]
    written = json.loads((ROOT / FOLDER / f"{name}.schema.json").read_text())
    assert written == model.model_json_schema(), AGAIN


def test_secondary_metrics_are_in_every_file() -> None:
    secondary = {metric.name for metric in TIERS["tier3"].secondary}
    assert secondary <= TaskEntry.model_fields.keys() & TaskMeans.model_fields.keys()
    assert secondary <= {column.name for column in MEASURED}


def test_list_is_in_step() -> None:
    assert (ROOT / LIST).read_text() == listing(), AGAIN


def test_every_key_and_column_is_explained() -> None:
    for file, model in documents().values():
        assert [key for key, _, words in key_rows(model) if not words] == [], file
    for file, columns in tables().items():
        assert [column.name for column in columns if not column.description] == [], file


def test_files_fit_their_schemas(plans: dict[str, StagePlan]) -> None:
    """As written by the code, with a validator that is not ours."""
    plan = plans["second"]
    folders = {
        "<step>": plan.step_folder(20),
        "<stage>": plan.results,
        "<results>": plan.results.parent,
    }
    sides = [find_run(name, plans[name].results) for name in ("first", "second")]
    write_runs(plan.results.parent, sides, [compare_runs(*sides, Matching(which="last"))])
    files = {file: model for file, model in documents().values() if file.startswith("<")}
    for file, model in files.items():
        folder, name = file.split("/")
        path = folders[folder] / name.split(",")[0]
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        for line in lines:
            jsonschema.validate(json.loads(line), model.model_json_schema())
