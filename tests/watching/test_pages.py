"""The watcher ends only when every page shows what there is."""

from pathlib import Path

import pytest

from evaluation.checkpoints.subjects import stage_steps
from evaluation.dependencies.steps import (
    FIGURES,
    FRONT,
    TABLES,
    figures_key,
    front_key,
    stage_records,
    tables_key,
)
from evaluation.records import write_record
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.watching import watch
from evaluation.watching.pages import late_pages
from tests.watching.conftest import Watched


def make(plan: StagePlan, until: str = FRONT) -> None:
    """Leaves the records of tables, figures and front page, or of the first of them."""
    steps, results = stage_steps(plan), Path(plan.config.results)
    key = tables_key(plan, steps, stage_records(plan, steps))
    (results / "report.html").write_text("page")
    tables = write_record(plan.results, TABLES, key)
    if until in (FIGURES, FRONT):
        write_record(plan.results, FIGURES, figures_key(tables))
    if until == FRONT:
        key = front_key({plan.name: tables}, None)
        write_record(results, FRONT, key, [results / "report.html"])


def test_what_shows_what_there_is(watched: Watched) -> None:
    """Wherever a watcher was killed, the next one knows what is left to be made."""
    watched.copy(10)
    plans = plan_stages(load_config(watched.world.config))
    assert late_pages(plans, ["stage1"]) == []
    assert watched.watcher(once=True).watch() == 0
    assert late_pages(plans, ["stage1"]) == ["stage1"]
    make(plans["stage1"], TABLES)
    assert late_pages(plans, ["stage1"]) == ["stage1", "front page"]
    make(plans["stage1"], FIGURES)
    assert late_pages(plans, ["stage1"]) == ["front page"]
    make(plans["stage1"])
    assert late_pages(plans, ["stage1"]) == []
    watched.world.results("report.html").write_text("half a page")
    assert late_pages(plans, ["stage1"]) == ["front page"]
    assert late_pages(plans, []) == []
    make(plans["stage1"])
    watched.copy(20)
    assert watched.watcher(once=True).watch() == 0
    assert late_pages(plans, ["stage1"]) == ["stage1"]


def test_it_does_not_end_before(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all evaluated and a page that cannot be made it goes on trying."""
    watched.copy(10)
    late = iter((["front page"], ["front page"], []))
    monkeypatch.setattr(watch, "late_pages", lambda *_: next(late))
    assert watched.watcher(until_step=10).watch() == 0
    said = capsys.readouterr().out
    assert "watching stage1: a look every 0.1 s" in said.splitlines()[0]
    assert "step 10 is evaluated: the end" in said.splitlines()[-1]
    assert list(late) == []
    monkeypatch.setattr(watch, "late_pages", lambda *_: ["front page"])
    assert watched.watcher(once=True).watch() == 1
    assert watched.watcher(until_step=10, give_up=0.0).watch() == 1
