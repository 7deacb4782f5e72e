"""What `snakemake --report` makes, in a real browser without a network."""

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.reporting.browser import figures, opened
from tests.workflow.world import World

OWN_WARNING = "cdn.tailwindcss.com should not be used in production"
"""Snakemake's report says this of itself."""


@pytest.fixture(scope="module")
def report(browser: Browser, tiny_world: World) -> Path:
    del browser  # comes first, as nothing is scored where there is none
    page = tiny_world.folder / "report.html"
    done = tiny_world.snakemake("--report", str(page))
    assert done.returncode == 0, done.stderr[-3000:]
    return page


def click(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_text(name, exact=True).first.click()


def test_it_opens_with_the_verdict_of_every_stage(
    browser: Browser, report: Path, tiny_world: World
) -> None:
    advice = tiny_world.read("stage2", "recommendation.json")
    kind = advice["kind"].capitalize()
    with opened(browser, report, known=OWN_WARNING) as page:
        said = page.locator("div.prose")
        said.wait_for()
        text = said.inner_text()
        assert "stage1: no objective" in text
        assert f"stage2: {advice['verdict']}\n{kind}: step {advice['step']}" in text
        said.get_by_role("link", name="All stages").click()
        page.get_by_text("all stages", exact=True).wait_for()


@pytest.mark.parametrize(
    "path", [("overview",), ("stage1", "report"), ("stage2", "report")], ids="/".join
)
def test_pages_open_inside_it(browser: Browser, report: Path, path: tuple[str, ...]) -> None:
    with opened(browser, report, known=OWN_WARNING) as page:
        click(page, *path)
        page.locator("[iconname=eye]").first.click()
        inner = page.frame_locator("iframe")
        inner.locator("#data[data-state=drawn]").wait_for(state="attached")
        assert inner.locator("#curves svg polyline").count() > 0
        frame = page.frames[1]
        assert frame.url.startswith("data:text/html")
        found = figures(frame)
        assert found
        assert all(figure["marks"] and not figure["broken"] for figure in found)
        assert inner.get_by_role("link", name="All stages").count() == 0  # it would lead nowhere
        if path[0] != "overview":  # what is chosen is chosen, although the page has no address
            inner.locator("#matrix .pick").first.click()
            assert inner.locator("#matrix .pick[aria-pressed=true]").count() > 0


def test_pages_find_each_other_in_the_zipped_one(
    browser: Browser, report: Path, tiny_world: World, tmp_path: Path
) -> None:
    """Where Snakemake has put each of them into a folder of its own."""
    done = tiny_world.snakemake("--report", str(tmp_path / "report.zip"))
    assert done.returncode == 0, done.stderr[-3000:]
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        archive.extractall(tmp_path)
    pages = {path.stat().st_size: path for path in tmp_path.rglob("data/raw/*/report.html")}
    front = pages[tiny_world.results("report.html").stat().st_size]
    stage = pages[tiny_world.results("stage2", "report.html").stat().st_size]
    with opened(browser, front, beside=(stage, front)) as page:
        page.locator(".stage").get_by_role("link", name="stage2").click()
        page.get_by_role("heading", name="stage2").first.wait_for()
        page.get_by_role("link", name="All stages").click()
        page.locator(".stage").first.wait_for()
    del report
