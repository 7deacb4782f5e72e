"""Pages of results that are few, many, broken or strangely named: they build and name what is missing."""

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docutils.core import publish_doctree

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.files import write_json
from evaluation.orchestration.hooks import failing
from evaluation.reporting.pages import stage_page as report
from evaluation.reporting.pages.curves import stage_series
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.pages.page import write_page
from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.figures import write_figures
from evaluation.reporting.tables.stage_results import StageResults, read_stage
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.results.stage_files import OVERVIEW
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side
from tests.reporting.pages import STEPS, page_data, write_report

ODD = "<script>alert('1')</script> \"quoted\" & ünïcödé 名前 $x_1$ " + "very long " * 30


def build(plan: StagePlan, steps: tuple[int, ...]) -> str:
    page = write_report(plan, steps)
    write_figures(plan)
    return page.read_text()


def score(plan: StagePlan, step: int | None, **options: Any) -> None:
    folder = plan.bridge_folder if step is None else plan.step_folder(step)
    write_side(folder, plan, step=100 if step is None else step, **options)
    if step is not None:
        write_deltas(plan, step)


def one_step(
    root: Path, *, bridge: dict[str, Any] | None = None, objective: Any = None, **step: Any
) -> StagePlan:
    """A stage whose only step is scored and compared."""
    plan = make_plans(root, steps=(10,), objective=objective)["second"]
    score(plan, None, **(bridge or {}))
    score(plan, 10, **step)
    write_stage(plan, (10,))
    return plan


def test_no_item_differs_and_every_item_is_right(tmp_path: Path) -> None:
    """Both sides alike; all questions of every task right on both, so that there is one class."""
    plan = one_step(tmp_path, bridge={"skill": 50.0}, skill=50.0)
    text = build(plan, (10,))
    assert "undecided" in text
    data = page_data(plan.results / "report.html")
    accuracy = next(s for s in data["series"] if (s["item"], s["metric"]) == ("quiz", "acc"))
    assert [point["value"] for point in accuracy["points"]] == [1.0]
    flips = data["flips"]["steps"]["10"]
    assert not any(one["gained"] or one["lost"] for one in flips)
    assert {flip["change"] for one in flips for flip in one["shown"]} == {"same"}  # probes


def test_a_tier_that_is_missing_everywhere(tmp_path: Path) -> None:
    plan = make_plans(tmp_path)["second"]
    only = make_plans(tmp_path / "other", tiers=("slices",))["second"]
    for step in STEPS:
        write_side(plan.step_folder(step), replace(plan, suite=only.suite), step=step)
    text = build(plan, STEPS)
    assert "step 10: tier3_cf.json; step 10: tier4_sft_native.json" in text
    assert "bridge: tier2_ppl.json" in text
    assert "step 20: bridge_deltas.json" in text
    assert {s["tier"] for s in page_data(plan.results / "report.html")["series"]} == {"tier2"}


def test_an_interval_that_is_not_there_is_explained(tmp_path: Path) -> None:
    """Of values without per-item scores, in the table, on the stage's page and on its card."""
    external: dict[str, Any] = {"per_item": False, "protocol": "external: a command"}
    plan = one_step(tmp_path, bridge=external, objective=[], seed=1, **external)
    plan.checkpoint(10).mkdir(parents=True)
    build(plan, (10,))
    series = page_data(plan.results / "report.html")["series"]
    own = {(one["tier"], one["item"], one["metric"]): one["note"] for one in series}
    assert own["tier2", "web", "nats_per_token"] == "No 95 % interval: no per-item scores."
    assert own["tier3", "overall", "acc"] == "No 95 % interval: quiz: no per-item scores."
    assert own["tier4", "overall", "all_checks_pass_rate"] is None
    (spark,) = page_data(write_front_page({"second": plan}))["sparks"]["second"]
    assert (spark["tier"], spark["note"]) == ("tier4", None)


def test_failed_jobs_are_named_on_pages_and_at_the_end(plans: dict[str, StagePlan]) -> None:
    """Whatever an error holds is no markup of a page, nor of the text with which the report opens."""
    plan = plans["second"]
    assert failing(list(plans.values())) == ""
    (plan.step_folder(20) / "tier3_cf.json").unlink()
    log = plan.results / "eval_logs" / "slurm" / "second_step_20.log"
    log.parent.mkdir(parents=True)
    said = "*no* `room` |for| x_ in <b>/tmp/[1]_\\ **"
    log.write_text(f"12:00 INFO\nerror: {said}\n")
    shown = f"Failed: step 20: {html.escape(said)}"
    assert shown in build(plan, STEPS)
    front = write_front_page(plans)
    assert shown in front.read_text()
    assert f"second step 20: {said} ({log})" in failing(list(plans.values()))
    tree = publish_doctree(front.with_name(OVERVIEW).read_text())
    assert not [node for node in tree.findall() if node.tagname == "system_message"]
    assert said in tree.astext()
    verdict = json.loads((plan.results / "recommendation.json").read_text())["verdict"]
    assert f"second: {verdict}" in tree.astext()


def test_names_with_odd_characters(tmp_path: Path) -> None:
    """As an external command may write them, and as categories and paths may be."""
    plan = make_plans(tmp_path, steps=(10,))["second"]
    score(plan, None, checkpoint=f"/ckpts/{ODD}/100")
    write_side(plan.step_folder(10), plan, step=10, skill=1.0, seed=1, checkpoint=f"/{ODD}/10")
    for folder in (plan.bridge_folder, plan.step_folder(10)):
        rename(folder / "tier2_ppl.json", "slices", "web")
        rename(folder / "tier3_cf.json", "tasks", "quiz")
        rename(folder / "tier4_sft_native.json", "by_category", "lists")
        for table in folder.glob("tier[23]_*.parquet"):
            table.unlink()
    write_deltas(plan, 10)
    write_stage(plan, (10,))
    text = build(plan, (10,))
    assert "<script>alert" not in text
    assert "ünïcödé 名前" in text
    data = page_data(plan.results / "report.html")
    assert {s["item"] for s in data["series"] if s["tier"] == "tier2"} == {"code", "overall", ODD}
    assert ODD in {row["item"] for row in data["deltas"]}


def rename(path: Path, section: str, name: str, to: str = ODD) -> None:
    content = json.loads(path.read_text())
    content["protocol"] = "external: a command"
    content[section] = {(to if key == name else key): v for key, v in content[section].items()}
    write_json(path, content)


def test_what_finds_no_room_on_a_page_is_named(
    plans: dict[str, StagePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recommended step and the last one come first, and the curves always have all steps."""
    plan, many = plans["second"], tuple(range(1, 101))
    found = _repeated(read_stage(plan, (20,)), many)
    monkeypatch.setattr(report, "LARGEST", 0)
    limit = len(stage_page(found, write_quality(found)).encode()) + 12_000
    monkeypatch.setattr(report, "LARGEST", limit)
    (plan.results / "report.html").write_text(stage_page(found, write_quality(found)))
    data = page_data(plan.results / "report.html")
    assert len(data["series"][0]["points"]) == 100
    kept, left = {row["step"] for row in data["deltas"]}, data["without_deltas"]
    assert {30, 100} <= kept
    assert len(left) > 10
    assert sorted([*kept, *left]) == list(many)
    assert (plan.results / "report.html").stat().st_size < limit


def test_a_page_too_large_for_snakemakes_report_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_page(tmp_path / "small.html", "x")
    assert not caplog.records
    write_page(tmp_path / "large.html", "x" * 1_600_000)
    assert "large.html: 1.6 MB" in caplog.text
    assert "report.zip" in caplog.text


def _repeated(found: StageResults, steps: tuple[int, ...]) -> StageResults:
    """Step 20 under other numbers."""
    scored, delta = found.steps[20], found.deltas[20]
    at, deltas = {}, {}
    for step in steps:
        number = {"step": step}
        tiers = {
            name: replace(tier, file=tier.file.model_copy(update=number))
            for name, tier in scored.results.tiers.items()
        }
        at[step] = replace(scored, results=replace(scored.results, tiers=tiers))
        rows = [row.model_copy(update=number) for row in delta.deltas]
        deltas[step] = delta.model_copy(update={**number, "deltas": rows})
    return replace(found, requested=steps, steps=at, deltas=deltas)


@pytest.mark.parametrize(("bend", "sd"), [(0.0, 0.0), (0.1, 0.1 / 3**0.5)])
def test_a_trend_is_no_noise(bend: float, sd: float) -> None:
    """Five steps on a straight line; bent at the middle one, neighbours' lines miss by d/2, d, d/2."""
    values = [0.5, 0.6, 0.7 + bend, 0.8, 0.9]
    common = {"tier": "tier3", "item": "quiz", "metric": "acc", "role": "step"}
    common |= dict.fromkeys(("chance", "low", "high"))
    rows = [{**common, "step": 10 * i, "value": value} for i, value in enumerate(values)]
    assert stage_series(rows)[0]["noise"]["sd"] == pytest.approx(sd, abs=1e-12)
