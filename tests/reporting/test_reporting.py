"""Tables, status, comparison and pages, from whole and from broken results."""

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.checkpoints.subjects import bridge_subject
from evaluation.dependencies.outdated import Outdated
from evaluation.reporting.comparison import folders_as_text
from evaluation.reporting.pages.curves import follows, joined_series
from evaluation.reporting.pages.provenance import jobs_table, provenance_tables
from evaluation.reporting.status import stage_status, status_table
from evaluation.reporting.tables.figures import write_figures
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.runs.compare import compare_checkpoints
from evaluation.settings.plan import StagePlan
from evaluation.settings.stage import Bridge, Origin
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import edited
from tests.prefill.plans import sign_meta
from tests.reporting.pages import STEPS, page_data, rows_of, write_report
from tests.watching.stand_in import leave_records
from tests.workflow.world import World


def test_summary_holds_what_the_tiers_hold(reported: dict[str, StagePlan]) -> None:
    plan = reported["second"]
    rows = pq.read_table(plan.results / "summary.parquet").to_pylist()
    found = {(r["role"], r["step"], r["item"], r["metric"]): r for r in rows}
    tier2 = json.loads((plan.step_folder(20) / "tier2_ppl.json").read_text())
    assert found["step", 20, "web", "ppl"]["value"] == tier2["slices"]["web"]["ppl"]
    assert found["step", 20, "overall", "ppl"]["value"] == pytest.approx(tier2["overall"]["ppl"])
    for item, metric in (("web", "ppl"), ("overall", "bits_per_byte")):
        row = found["step", 20, item, metric]
        assert row["low"] < row["value"] < row["high"]
        assert row["note"] is None
    tier3 = json.loads((plan.step_folder(20) / "tier3_cf.json").read_text())
    assert found["step", 20, "overall", "acc"]["value"] == tier3["overall"]["accuracy"]
    assert found["step", 20, "quiz", "acc"]["flag"] == "better"
    assert found["step", 20, "quiz", "acc"]["chance"] == 0.25
    assert found["bridge", 100, "quiz", "acc"]["delta"] is None
    for measure in TIERS["tier3"].secondary:
        row = found["step", 20, "overall", measure.name]
        assert row["low"] < row["value"] < row["high"]
        assert row["delta_low"] < row["delta"] < row["delta_high"]
    lines = rows_of(plan.results / "summary.csv")
    assert [line["item"] for line in lines] == [row["item"] for row in rows]


def test_a_stage_without_a_bridge(reported: dict[str, StagePlan]) -> None:
    plan = reported["first"]
    rows = pq.read_table(plan.results / "summary.parquet").to_pylist()
    assert rows
    assert all(row["delta"] is None for row in rows)
    text = (plan.results / "report.html").read_text()
    assert "has no bridge" in text
    series = page_data(plan.results / "report.html")["series"]
    assert {len(one["points"]) for one in series} == {1}
    assert all(one["noise"] is None for one in series)


def test_page_carries_series_and_deltas(reported: dict[str, StagePlan]) -> None:
    plan = reported["second"]
    data = page_data(plan.results / "report.html")
    curve = next(s for s in data["series"] if (s["item"], s["metric"]) == ("quiz", "acc"))
    assert [point["step"] for point in curve["points"]] == [10, 20, 30]
    assert curve["bridge"]["value"] < curve["points"][-1]["value"]
    assert curve["noise"]["sd"] > 0
    stored = json.loads((plan.step_folder(20) / "bridge_deltas.json").read_text())
    delta = next(d for d in stored["deltas"] if (d["item"], d["metric"]) == ("quiz", "delta_acc"))
    named = {(row["step"], row["item"], row["metric"]): row for row in data["deltas"]}
    row = named[20, "quiz", "acc"]
    keys = ("value", "delta", "low", "high", "p_holm", "mde")
    assert [row[key] for key in keys] == pytest.approx([delta[key] for key in keys])
    assert row["bridge"] == pytest.approx(delta["bridge_value"])


def test_stages_are_joined_at_their_bridges(reported: dict[str, StagePlan]) -> None:
    """A bridge may also be given by the path of a checkpoint."""
    first, second = reported["first"], reported["second"]
    data = page_data(first.results.parent / "report.html")
    line = next(s for s in data["series"] if (s["item"], s["metric"]) == ("web", "ppl"))
    places = [(point["x"], point["step"]) for point in line["points"]]
    assert places == [(100, 100), (110, 10), (120, 20), (130, 30)]
    assert line["borders"] == [100]
    for path, expected in ((first.checkpoint(100), ("first", 100)), (Path("/other/100"), None)):
        stage = second.stage.model_copy(update={"bridge": Bridge(path=str(path))})
        assert follows({**reported, "second": replace(second, stage=stage)})["second"] == expected


def curves(*items: str) -> list[dict[str, Any]]:
    """A series of two steps for each item."""
    points = [{"x": x, "step": x, "value": 1.0, "low": None, "high": None} for x in (10, 20)]
    return [{"tier": "tier2", "item": i, "metric": "ppl", "points": points} for i in items]


def test_a_mean_of_other_items_is_not_joined() -> None:
    first, more = curves("overall", "web"), curves("overall", "web", "code")
    known = {"a": None, "b": ("a", 20)}
    assert [s["item"] for s in joined_series({"a": first, "b": first}, known)] == ["overall", "web"]
    assert [s["item"] for s in joined_series({"a": first, "b": more}, known)] == ["web"]


@pytest.mark.parametrize(
    ("known", "lines", "borders"),
    [
        (
            {"a": None, "b": ("a", 20), "c": ("b", 20)},
            {"one": [10, 20, 30, 40, 50, 60]},
            [20, 40],
        ),
        (
            {"a": None, "b": ("a", 20), "c": ("a", 20)},
            {"a → b": [10, 20, 30, 40], "c": [20, 30, 40]},
            [20],
        ),
        (
            {"a": None, "b": ("a", 10), "c": ("b", 20)},
            {"a": [10, 20], "b → c": [10, 20, 30, 40, 50]},
            [10, 30],
        ),
        (
            {"a": ("c", 2), "b": ("a", 2), "c": ("b", 2)},
            {name: [10, 20] for name in "abc"},
            [],
        ),
    ],
    ids=["one after the other", "ablations", "from the middle", "in a circle"],
)
def test_ablations_branch_off_where_they_did(
    known: dict[str, tuple[str, int] | None], lines: dict[str, list[int]], borders: list[int]
) -> None:
    (joined,) = joined_series({name: curves("web") for name in "abc"}, known)
    if "lines" in joined:
        found = {line["name"]: [p["x"] for p in line["points"]] for line in joined["lines"]}
        assert joined["points"] == []
    else:
        found = {next(iter(lines)): [p["x"] for p in joined["points"]]}
    assert found == lines
    assert joined["borders"] == borders


def test_a_stage_begins_where_it_was_trained_from(reported: dict[str, StagePlan]) -> None:
    """Whatever it is compared with."""
    second = reported["second"]
    stage = second.stage.model_copy(update={"trained_from": Origin(stage="first", step=50)})
    assert follows({**reported, "second": replace(second, stage=stage)})["second"] == ("first", 50)


def told(plan: StagePlan) -> str:
    return status_table({"second": stage_status(plan, STEPS)})


def test_status_tells_what_is_to_come(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    assert not stage_status(plan, STEPS)["complete"]
    assert re.search(r"to come: (\S+, ){3}\S+ and \d+ more$", told(plan), re.MULTILINE)
    write_report(plan, STEPS)
    assert "to come: figures/tier2_curves.svg" in told(plan)
    write_figures(plan)
    assert stage_status(plan, STEPS)["complete"]


def test_status_tells_failed_running_and_missing(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    logs = plan.results / "eval_logs" / "slurm"
    logs.mkdir(parents=True)
    bar = "web:  45%|████▌     | 123k/273k [00:10<00:12, 12.3ktok/s]"
    for step in STEPS:
        (plan.step_folder(step) / "tier2_ppl.json").unlink()
    (logs / "second_step_10.log").write_text("12:00 INFO\nerror: no room\n")
    (logs / "second_step_20.log").write_text(f"12:00 INFO\n{bar}\r")
    subjects = stage_status(plan, STEPS)["subjects"]
    states = [subjects[str(step)]["files"]["tier2"] for step in STEPS]
    assert states == ["failed", "running", "missing"]
    assert "second 10: no room" in told(plan)
    assert f"second 20: runs ({logs}/second_step_20.log)" in told(plan)
    collecting = plan.collect_log(plan.step_folder(20))
    collecting.parent.mkdir(parents=True)
    collecting.write_text("")
    assert f"second 20: runs ({collecting})" in told(plan)
    collecting.write_text(f"{bar}\n{plan.step_folder(20)}\n")  # it has ended
    assert "second 20: " not in told(plan)
    log = plan.cache / "logs" / "slice_web.log"
    log.parent.mkdir(parents=True)
    log.write_text(bar)
    assert f"second prefill, slice web: runs ({log})" in told(plan)
    collecting.unlink()
    assert f"second 20: runs ({logs}/second_step_20.log)" in told(plan)
    old = time.time() - 3600
    os.utime(logs / "second_step_20.log", (old, old))
    assert stage_status(plan, STEPS)["subjects"]["20"]["files"]["tier2"] == "missing"


def test_compare_two_folders(reported: dict[str, StagePlan]) -> None:
    plan = reported["second"]
    text = folders_as_text(compare_checkpoints(plan.step_folder(10), plan.step_folder(30)))
    assert "p (Holm)" in text
    family = [line for line in text.splitlines() if re.match(r"tier\d", line)]
    counted = [line for line in family if "overall" not in line or line.startswith("tier4")]
    flagged = sum(line.endswith("worse") for line in counted)
    assert f"{flagged} of {len(counted)} items significantly worse" in text


def test_trust_names_sources_templates_and_losses(plans: dict[str, StagePlan]) -> None:
    """Revision of what was fetched, whitespace of templates, what was left out, device time."""
    plan = plans["second"]
    folder = plan.cache_folder("tier3", "quiz")
    source = {"resolved": "0123456789" * 4}
    sign_meta(folder, checksum={"examples.jsonl": "quiz"}, source=source)
    for side in (plan.bridge_folder, *map(plan.step_folder, STEPS)):
        with edited(side / "tier3_cf.json") as tier3:
            tier3["tasks"]["quiz"] |= {
                "items": {"asked": 402, "used": 400, "left_out": {"empty": 2}},
                "task": {"context": " <b>{{ q }}\n", "continuation": " {{ c }}"},
            }
    found = read_stage(plan, STEPS)
    tables = {table.title: table for table in provenance_tables(found)}
    quiz = next(row for row in tables["What was scored"].rows if row[0] == "quiz")
    assert quiz[1] == "some/quiz train @ 012345678901"
    assert quiz[3] == "400 of 402 (2 left out: empty)"
    assert quiz[-1] == "all"
    (exam,) = [row for row in tables["What was scored"].rows if row[0] == "exam"]
    assert exam[1].endswith("(no revision pinned)")
    assert tables["Templates"].rows[0][:3] == ("quiz", " <b>{{ q }}\n", " {{ c }}")
    jobs = jobs_table(found)
    assert len(jobs.rows) == 12
    assert jobs.note.startswith("24 seconds")


def test_a_failure_of_another_configuration_is_outdated(world: World) -> None:
    """Also before a job tries again; one that nothing has corrected stays, whatever failed since."""
    plans, recorded = world.plans, "trained with tokenizer 'other'"
    leave_records(bridge_subject(plans["stage2"], plans), error=recorded)
    log = plans["stage2"].bridge_log
    log.parent.mkdir(parents=True)

    def bridge(error: str) -> tuple[str, str | None]:
        log.write_text(f"12:00:00 INFO begun\nerror: {error}\n")
        found = stage_status(world.plans["stage2"], (), Outdated(world.plans))["subjects"]["bridge"]
        return found["files"]["tier2"], found["error"]

    assert bridge(recorded) == ("failed", recorded)
    name = plans["stage2"].tokenizer.name
    world.change(tokenizer={"name": name, "also_known_as": ["other"]})
    assert bridge(recorded) == ("outdated", None)
    assert bridge("no GPU answers") == ("failed", "no GPU answers")
