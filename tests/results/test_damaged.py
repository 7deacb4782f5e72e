"""Files that somebody edited or mistook: one sentence each, and the others are still read."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.errors import ResultsError
from evaluation.grading.units import units_of_files, write_units
from evaluation.reporting.report import report_run
from evaluation.reporting.status import stage_status, status_table
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.results.deltas_file import StageDeltas, StepDeltas
from evaluation.results.probe_files import read_generations
from evaluation.results.read import read_tier
from evaluation.results.stage_files import Recommendation, TaskQuality
from evaluation.results.table import read_rows
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import edit_json
from tests.bridge.folders import edited as edit
from tests.reporting.pages import STEPS, write_report

Reader = Callable[[Path], object]


def tier(name: str) -> Reader:
    return lambda path: read_tier(path.parent, name)


def of_program(name: str) -> Reader:
    """Files that a program wrote, of which units are made."""

    def read(path: Path) -> object:
        tier, folder = TIERS[name], path.parent
        content = json.loads((folder / tier.summary_file).read_text())
        write_units(tier, folder, units_of_files(tier, content, folder))
        return read_tier(folder, name)

    return read


ANSWERS = "tier4_sft_native_generations.jsonl"
STEP_JSON: dict[str, Reader] = {one.summary_file: tier(name) for name, one in TIERS.items()}
STEP_JSON["bridge_deltas.json"] = StepDeltas.read
STAGE_JSON: dict[str, Reader] = {
    "stage/bridge_deltas.json": StageDeltas.read,
    "stage/recommendation.json": Recommendation.read,
    "stage/task_quality.json": TaskQuality.read,
}
UNITS: dict[str, Reader] = {one.units_file: tier(name) for name, one in TIERS.items()}
DETAILS: dict[str, Reader] = {
    "tier2_ppl_blocks.parquet": of_program("tier2"),
    "tier3_cf_candidates.parquet": of_program("tier3"),
}
PARQUET = {**UNITS, **DETAILS}
JSON = {**STEP_JSON, **STAGE_JSON}
ALL = {**JSON, **PARQUET, "stage/summary.parquet": read_rows, ANSWERS: read_generations}


def place(plan: StagePlan, name: str) -> tuple[Path, Reader]:
    """A file by its name below the stage's results, and what reads it."""
    folder = plan.results if name.startswith("stage/") else plan.step_folder(20)
    return folder / name.removeprefix("stage/"), ALL[name]


def contradicted(path: Path) -> list[Path]:
    """The other files of the same tier."""
    tiers = [tier for tier in TIERS.values() if path.name in tier.files]
    return [path.with_name(name) for tier in tiers for name in tier.files]


def refused(path: Path, reader: Reader, fragment: str) -> None:
    with pytest.raises(ResultsError) as caught:
        reader(path)
    said = str(caught.value)
    assert str(path.parent) in said
    assert path.name in said or any(one.name in said for one in contradicted(path))
    assert fragment in said
    assert "\n" not in said
    assert len(said) < len(str(path)) + 400


TIER2, TIER3, TIER4 = "tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json"
WEB, QUIZ = ("slices", "web"), ("tasks", "quiz")
KEYS = [
    (TIER2, (*WEB, "ppl"), 0, "slices.web.ppl is 0: it should be greater"),
    (TIER2, (*WEB, "nats_per_token"), 1e9, "nats_per_token is 1000000000"),
    (TIER2, ("slices", "gone"), {"ppl": 2.0, "nats_per_token": 0.7}, "no rows of 'gone'"),
    (TIER3, (*QUIZ, "primary"), "pmi", "not that of `metrics` by its primary, pmi"),
    (TIER4, ("prompts", 0, "id"), "p1", "'p1' appears twice"),
    (TIER4, ("prompts",), [], "prompts is empty"),
    ("bridge_deltas.json", ("protocol",), "bridge-0", "written by bridge protocol 'bridge-0'"),
    ("bridge_deltas.json", ("deltas", 0, "tier"), "tier9", "tier"),
    ("stage/recommendation.json", ("similar",), [30], "similar.0 is 30"),
    ("stage/task_quality.json", ("protocol",), "report-0", "written by report protocol 'report-0'"),
]


@pytest.mark.parametrize(("name", "keys", "value", "fragment"), KEYS)
def test_a_wrong_value_names_its_key(
    plans: dict[str, StagePlan], name: str, keys: tuple[Any, ...], value: Any, fragment: str
) -> None:
    path, reader = place(plans["second"], name)
    with edit(path) as content:
        inner: Any = content
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
    refused(path, reader, fragment)


@pytest.mark.parametrize("name", [*STEP_JSON, *PARQUET, ANSWERS])
def test_the_others_are_still_shown(plans: dict[str, StagePlan], name: str) -> None:
    """Tables, pages, figures and status of a stage of which one file is damaged."""
    plan = plans["second"]
    path, _ = place(plan, name)
    path.write_bytes(b"{" if path.suffix == ".json" else b"damaged")
    page = write_report(plan).read_text()
    report_run(plans)
    values = {row["step"] for row in read_rows(plan.results / "summary.parquet")}
    assert values == {10, 20, 30, 100}
    if name in (*DETAILS, "bridge_deltas.json") or path.suffix == ".jsonl":
        return
    front = (plan.results.parent / "report.html").read_text()
    assert path.name in page
    assert re.search("cannot be used: step 20", front)
    said = stage_status(plan, STEPS)
    if path.suffix == ".json":
        assert not said["complete"]
        assert "damaged" in said["subjects"]["20"]["files"].values()
        assert f"second 20: {path}" in status_table({"second": said})
    assert len(read_stage(plan, STEPS).damaged) == 1


def test_an_objective_that_has_changed(plans: dict[str, StagePlan]) -> None:
    """Deltas that judge other objectives than the configuration has now are left out, not misread."""
    plan = plans["second"]
    path = plan.step_folder(20) / "bridge_deltas.json"
    with edit(path) as content:
        del content["objectives"][1:]
    write_stage(plan, STEPS)
    stage = StageDeltas.read(plan.results / "bridge_deltas.json")
    assert [entry.step for entry in stage.verdicts] == [10, 30]
    assert "it judges 1 objectives" in stage.left_out[0]
    assert Recommendation.read(plan.results / "recommendation.json").left_out == stage.left_out


def test_what_a_later_version_adds_is_no_fault(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    for name in JSON:
        path, reader = place(plan, name)
        edit_json(path, new={"key": [1, None]})
        reader(path)
    for name in PARQUET:
        path, reader = place(plan, name)
        table = pq.read_table(path)
        pq.write_table(table.append_column("new", pa.array([1] * table.num_rows)), path)
        reader(path)
    assert write_deltas(plan, 20).exists()
