"""docs/results.md names every file of results with its keys and columns, and is short."""

import shutil

import pytest
from pydantic import BaseModel

from evaluation.reporting.report import report_run
from evaluation.results.columns import MEASURED
from evaluation.results.comparison_file import Comparison, ComparisonRow
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.deltas_file import StageDeltas, StepDeltas
from evaluation.results.items import TIER_MODELS
from evaluation.results.stage_files import (
    QualityRow,
    Recommendation,
    TaskQuality,
)
from evaluation.results.tier_files import TaskEntry, TaskMeans
from evaluation.runs.compare import compare_runs, write_comparisons
from evaluation.runs.find import find_run
from evaluation.runs.matching import Matching
from evaluation.settings.model import models_in
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.results.page import (
    HEADER,
    PAGE,
    described,
    place_of,
    sections,
    undescribed,
    words,
)

MODELS: dict[str, type[BaseModel]] = {
    **{f"<step>/{TIERS[name].summary_file}": models.file for name, models in TIER_MODELS.items()},
    "<step>/bridge_deltas.json": StepDeltas,
    "<stage>/bridge_deltas.json": StageDeltas,
    "<stage>/recommendation.json": Recommendation,
    "<stage>/task_quality.json": TaskQuality,
    "<results>/comparison.json": Comparison,
}
IN_TABLES = (DeltaRow, QualityRow, ComparisonRow)


def keys_of(model: type[BaseModel]) -> set[str]:
    """All keys of a file, without those of rows that a table has, too."""
    inner = [one for field in model.model_fields.values() for one in models_in(field.annotation)]
    nested = (keys_of(one) for one in inner if one not in IN_TABLES)
    return set(model.model_fields).union(*nested)


@pytest.mark.parametrize("file", MODELS)
def test_every_key_of_a_file_is_in_the_page(file: str) -> None:
    above = "<step>/bridge_deltas.json" if file == "<stage>/bridge_deltas.json" else file
    text = described()[file] + described()[above] + sections()[HEADER]
    assert keys_of(MODELS[file]) - words(text) == set()


def test_every_file_is_in_the_page_and_the_page_has_no_other(plans: dict[str, StagePlan]) -> None:
    """Of the scores of two stages: pages and tables of one of them, and its comparison with the other."""
    results = plans["second"].results.parent
    report_run(plans)
    other = shutil.copytree(plans["second"].results, results.parent / "other")
    sides = [find_run("this", plans["second"].results), find_run("other", other)]
    write_comparisons(results, [compare_runs(*sides, Matching())])
    assert [*undescribed(results)] == []
    files = {place_of(str(path.relative_to(results))) for path in results.rglob("*.*")}
    assert {place for place, keys in described().items() if keys} <= files


def test_what_the_page_lacks_is_found(plans: dict[str, StagePlan]) -> None:
    results = plans["second"].results.parent
    (results / "second/new.csv").write_text("a\n")
    summary = results / "second/summary.csv"
    summary.write_text(summary.read_text().replace("value,", "worth,", 1))
    found = [*undescribed(results)]
    assert found == ["second/new.csv", "second/summary.csv: worth"]


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 200


def test_secondary_metrics_are_in_every_file() -> None:
    secondary = {metric.name for metric in TIERS["tier3"].secondary}
    assert secondary <= TaskEntry.model_fields.keys() & TaskMeans.model_fields.keys()
    assert secondary <= {column.name for column in MEASURED}
