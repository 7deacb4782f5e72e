"""Files of results that somebody edited or mistook: refused by their path, and the others are still read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import ResultsError
from evaluation.reporting.report import report_run
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import read_tier
from evaluation.results.stage_files import Recommendation, TaskQuality
from evaluation.results.table import read_rows
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import edited
from tests.reporting.pages import write_report

Reader = Callable[[Path], object]
Change = Callable[[pa.Table], pa.Table]

READERS: dict[str, Reader] = {
    **{
        file: lambda path, name=name: read_tier(path.parent, name)
        for name, tier in TIERS.items()
        for file in (tier.units_file, tier.summary_file)
    },
    "bridge_deltas.json": StepDeltas.read,
    "stage/recommendation.json": Recommendation.read,
    "stage/task_quality.json": TaskQuality.read,
    "stage/summary.parquet": read_rows,
}


def place(plan: StagePlan, name: str) -> Path:
    """A file by its name below the stage's results."""
    folder = plan.results if name.startswith("stage/") else plan.step_folder(20)
    return folder / name.removeprefix("stage/")


def refused(path: Path, name: str, fragment: str) -> None:
    with pytest.raises(ResultsError) as caught:
        READERS[name](path)
    said = str(caught.value)
    assert str(path.parent) in said
    assert fragment in said
    assert "\n" not in said


def each(name: str, value: Callable[[Any], Any]) -> Change:
    """A column whose values are made from those that were there."""

    def change(table: pa.Table) -> pa.Table:
        values = pa.array([value(old) for old in table[name].to_pylist()])
        return table.set_column(table.column_names.index(name), name, values)

    return change


UNITS = {name: tier.units_file for name, tier in TIERS.items()}
COLUMNS: list[tuple[str, Change, str]] = [
    (UNITS["tier2"], lambda table: table.drop_columns(["unit"]), 'Field "unit" does not exist'),
    (UNITS["tier2"], each("nats", lambda v: float("nan")), "'nats' has NaN"),
    (UNITS["tier2"], each("nats", lambda v: "a"), "damaged"),
    (UNITS["tier2"], each("nats", lambda v: 2 * v), "the two are not of one scoring"),
    (UNITS["tier2"], each("tokens", lambda v: 0.0), "'web' has no nats per token"),
    (UNITS["tier2"], each("unit", lambda v: "3"), "appears twice"),
    (UNITS["tier2"], each("item", lambda v: f"x{v}"), "no rows of 'web'"),
    (UNITS["tier3"], lambda table: table.drop_columns(["acc"]), "'quiz' has no accuracy"),
    (UNITS["tier3"], each("acc", lambda v: 1 - v), "the two are not of one scoring"),
    (UNITS["tier3"], each("acc", lambda v: 2 * v), "not in [0, 1]"),
    (UNITS["tier3"], each("strata", lambda v: "[1"), "the column 'strata' has"),
    (UNITS["tier4"], each("all_checks_pass_rate", lambda v: None), "has no all checks pass rate"),
    (UNITS["tier4"], each("all_checks_pass_rate", lambda v: 0.25), "give a mean of 0.25"),
    ("stage/summary.parquet", each("tier", lambda v: "tier9"), "tier9"),
]


@pytest.mark.parametrize(("name", "change", "fragment"), COLUMNS)
def test_a_wrong_column_is_named(
    plans: dict[str, StagePlan], name: str, change: Change, fragment: str
) -> None:
    path = place(plans["second"], name)
    pq.write_table(change(pq.read_table(path)), path)
    refused(path, name, fragment)


TIER2, TIER3, TIER4 = "tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json"
KEYS = [
    (TIER2, ("slices", "web", "ppl"), 0, "ppl is 0"),
    (TIER2, ("slices", "gone"), {"ppl": 2.0, "nats_per_token": 0.7}, "no rows of 'gone'"),
    (TIER3, ("tasks", "quiz", "accuracy"), None, "tasks.quiz.accuracy is missing"),
    (TIER4, ("summary", "all_checks_pass_rate"), None, "all_checks_pass_rate is missing"),
    ("bridge_deltas.json", ("protocol",), "bridge-0", "written by bridge protocol 'bridge-0'"),
    ("bridge_deltas.json", ("objectives", 0, "tier"), "tier9", "objectives.0.tier"),
    ("stage/recommendation.json", ("similar",), [30], "similar.0 is 30"),
]


@pytest.mark.parametrize(("name", "keys", "value", "fragment"), KEYS)
def test_a_wrong_value_names_its_key(
    plans: dict[str, StagePlan], name: str, keys: tuple[Any, ...], value: Any, fragment: str
) -> None:
    path = place(plans["second"], name)
    with edited(path) as content:
        inner: Any = content
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
    refused(path, name, fragment)


@pytest.mark.parametrize("name", [TIER3, UNITS["tier2"], "bridge_deltas.json"])
def test_the_others_are_still_shown(plans: dict[str, StagePlan], name: str) -> None:
    """Table and pages of a stage of which one file is damaged."""
    plan = plans["second"]
    place(plan, name).write_bytes(b"{")
    page = write_report(plan).read_text()
    report_run(plans)
    steps = {row["step"] for row in read_rows(plan.results / "summary.parquet")}
    assert steps == {10, 20, 30, 100}
    assert name in page or name == "bridge_deltas.json"  # which is made again


def test_what_a_later_version_adds_is_no_fault(plans: dict[str, StagePlan]) -> None:
    for name, reader in READERS.items():
        path = place(plans["second"], name)
        if path.suffix == ".json":
            path.write_text(json.dumps(json.loads(path.read_text()) | {"new": {"key": [1, None]}}))
        elif path.suffix == ".parquet":
            table = pq.read_table(path)
            pq.write_table(table.append_column("new", pa.array([1] * table.num_rows)), path)
        reader(path)
