"""Loss by position and accuracy by length on a stage's page: what it draws, and where it is left out."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser

from evaluation.bridge.write import write_deltas
from evaluation.files import write_parquet
from evaluation.metrics.positions import NATS, TOKENS
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.results.deltas_file import DELTAS, StepDeltas
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import SUITE, make_plans
from tests.reporting.browser import figures, opened, saved, touch
from tests.reporting.pages import STEPS, page_data, write_report, write_results

SIZES: dict[str, Any] = {"tiers": ("slices", "tasks"), "sequence_length": 2048}
CARDS = "#positions .card"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> StagePlan:
    plan = write_results(tmp_path_factory.mktemp("long"), **SIZES)["second"]
    write_report(plan, STEPS)
    return plan


def assert_of(rows: list[Any], series: dict[str, Any]) -> None:
    """A point for each row of the files: its value, the bridge's, and the paired interval."""
    ours, theirs = (line["points"] for line in series["lines"])
    for row, mine, other in zip(rows, ours, theirs, strict=True):
        assert (mine["value"], other["value"]) == pytest.approx((row.value, row.bridge_value))
        paired = mine["paired_low"] - row.bridge_value, mine["paired_high"] - row.bridge_value
        assert paired == pytest.approx((row.low, row.high), abs=1e-6)


def test_points_are_those_of_the_files(long: StagePlan) -> None:
    """The chosen step's and the bridge's, with the interval of the paired difference."""
    data = page_data(long.results / "report.html")
    chosen = data["defaults"]["step"]
    content = StepDeltas.read(long.step_folder(chosen) / DELTAS)
    assert [series["item"] for series in data["positions"]] == ["web", "code"]
    for series in data["positions"]:
        assert [line["name"] for line in series["lines"]] == [f"step {chosen}", "the bridge"]
        rows = [row for row in content.by_position if row.item == series["item"]]
        assert_of(rows, series)
        points = series["lines"][0]["points"]
        assert [(one["first"], one["last"]) for one in points] == [(r.first, r.last) for r in rows]
        assert len(points) == 4
        for one in points:
            assert one["low"] < one["paired_low"] < one["paired_high"] < one["high"]


def test_what_a_reader_sees(browser: Browser, long: StagePlan, tmp_path: Path) -> None:
    with opened(browser, long.results / "report.html") as page:
        cards = page.locator(CARDS)
        assert cards.locator("h4").all_inner_texts() == ["web", "code"]
        legend = page.locator("#position-legend").inner_text()
        assert legend.split("\n") == ["step 30", "the bridge"]
        card = cards.first
        assert card.locator("circle").count() == 8
        texts, ticks = card.locator("svg text").all_text_contents(), ["0", "256", "512", "1024"]
        assert [text for text in texts if text in ticks] == ticks
        assert "position (logarithmic)" in texts
        at = [float(one.get_attribute("cx") or "nan") for one in card.locator("circle").all()[:4]]
        assert at[1] - at[0] == pytest.approx(at[2] - at[1]) == pytest.approx(at[3] - at[2])
        touch(card.locator(".hit").nth(2), page.locator("#tip"))
        tip = page.locator("#tip").inner_text()
        assert "step 30 positions 512 to 1023:" in tip
        assert "the bridge positions 512 to 1023:" in tip
        assert all(one["broken"] == [] for one in figures(page))
        path = saved(page, card.get_by_role("button"), tmp_path)
        assert path.name == "second_tier2_web_nats_per_token_by-position.svg"
        page.locator("#item").select_option("tier2/code")
        assert page.locator(f"{CARDS} h4").all_inner_texts() == ["code"]


def test_without_positions_of_the_bridge_its_line_is_left_out(tmp_path: Path) -> None:
    plan = write_results(tmp_path, **SIZES)["second"]
    path = plan.bridge_folder / "tier2_ppl_units.parquet"
    write_parquet(path, pq.read_table(path).drop_columns([NATS, TOKENS]))
    for step in STEPS:
        write_deltas(plan, step)
    series = page_data(write_report(plan, STEPS))["positions"]
    assert [len(one["lines"]) for one in series] == [1, 1]
    assert "paired_low" not in series[0]["lines"][0]["points"][0]


def test_short_sequences_and_no_checkpoint_have_no_such_part(plans: dict[str, StagePlan]) -> None:
    page = write_report(plans["second"], STEPS)
    assert page_data(page)["positions"] == []
    assert "Loss by position" not in page.read_text()
    assert read_stage(plans["second"], ()).steps == {}
    assert page_data(write_report(plans["second"], ()))["positions"] == []


def test_a_stage_without_a_bridge_shows_its_own_line(long: StagePlan) -> None:
    first = make_plans(Path(long.config.results).parent, **SIZES)["first"]
    series = page_data(write_report(first, (100,)))["positions"]
    assert [[line["name"] for line in one["lines"]] for one in series] == [["step 100"]] * 2


def test_tasks_and_groups_at_several_lengths_are_curves(browser: Browser, tmp_path: Path) -> None:
    """Their points are the values and paired deltas of the stage's files."""
    task, lengths = SUITE["tasks"]["quiz"], (16384, 4096, 8192)
    of = {n: [f"find__{n}", f"count__{n}"] for n in lengths}
    groups = {f"all__{n}": {"tier": "tier3", "members": names} for n, names in of.items()}
    tasks = {name: task for names in of.values() for name in names} | {"lonely__4096": task}
    suite = {"tasks": tasks, "groups": groups}
    plan = write_results(tmp_path, suite=suite)["second"]
    page = write_report(plan, STEPS)
    data = page_data(page)
    assert [one["item"] for one in data["lengths"]] == ["all (group)", "find", "count"]
    chosen = data["defaults"]["step"]
    rows = {
        row.item: row
        for row in StepDeltas.read(plan.step_folder(chosen) / DELTAS).deltas
        if row.metric == "delta_acc"
    }
    for series in data["lengths"]:
        lengths = [one["first"] for one in series["lines"][0]["points"]]
        assert lengths == [4096, 8192, 16384]
        name, _, mark = series["item"].partition(" ")
        assert_of([rows[f"{name}__{n}{mark and f' {mark}'}"] for n in lengths], series)
    with opened(browser, page) as shown:
        names = shown.locator("#lengths .card h4").all_inner_texts()
        assert names == ["all (group)", "find", "count"]
        touch(shown.locator("#lengths .card .hit").nth(1), shown.locator("#tip"))
        assert f"step {chosen} length 8192:" in shown.locator("#tip").inner_text()
        assert all(one["broken"] == [] for one in figures(shown))
        assert shown.locator("#positions").count() == 0
