"""The pages in a real browser without a network, as a new reader uses them."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.reporting.browser import drawn, opened, violations
from tests.workflow.world import World

OWN_WARNING = "cdn.tailwindcss.com should not be used in production"
"""Snakemake's report says this of itself."""


@pytest.mark.parametrize("name", ["report.html", "first/report.html", "second/report.html"])
def test_a_page_is_drawn_and_can_be_read_by_all(browser: Browser, written: Path, name: str) -> None:
    with opened(browser, written / name) as page:
        assert page.locator(".chart svg.marks").count() == page.locator(".chart").count() > 0
        passed, told = violations(page)
        assert told == []
        assert passed > 30


def test_a_reader_finds_decision_question_and_number(browser: Browser, written: Path) -> None:
    with opened(browser, written / "report.html") as page:
        row = page.locator(".decision tbody tr").filter(has_text="second")
        assert row.locator(".do").inner_text().startswith(("Take ", "Can't tell", "Stay on "))
    with opened(browser, written / "second" / "report.html") as page:
        flip = page.locator("details").filter(has_text="quiz (tier3)").first
        flip.locator("summary").click()
        assert flip.locator("article pre").first.is_visible()
        assert "</script><b>Why" in flip.locator("article pre").first.inner_text()
        page.locator("#search").fill("tier3 quiz better")
        rows = page.locator("#numbers tbody tr")
        assert rows.count() > 0
        assert all("quiz" in text for text in rows.all_inner_texts())
        page.get_by_role("button", name="value").click()
        values = [
            float(text) for text in page.locator("#numbers td:nth-child(4)").all_inner_texts()
        ]
        assert values == sorted(values)
        menu = page.locator("[id=tier3_acc_forest] select")
        menu.select_option(index=0)
        assert menu.input_value()


def test_pages_open_inside_snakemakes_report(browser: Browser, tiny_world: World) -> None:
    report = tiny_world.folder / "report.html"
    done = tiny_world.snakemake("--report", str(report))
    assert done.returncode == 0, done.stderr[-3000:]
    decision = tiny_world.read("stage2", "recommendation.json")
    with opened(browser, report, known=OWN_WARNING) as page:
        assert "stage2: " in page.locator("div.prose").inner_text()
        assert str(decision["step"]) in page.locator("div.prose").inner_text()
        page.get_by_text("stage2", exact=True).first.click()
        page.get_by_role("row").filter(has_text="verdict, curves").locator("[iconname=eye]").click()
        page.frame_locator("iframe").locator("html[data-drawn=all]").wait_for(state="attached")
        assert page.frames[1].url.startswith("data:text/html")
        drawn(page.frames[1])
        assert page.frames[1].locator(".chart svg.marks").count() > 0
