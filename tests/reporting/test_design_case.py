"""The case that pages are designed for: nothing of it is left out, and it opens at once."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from evaluation.reporting.pages.page import LARGEST
from tests.reporting.browser import opened, violations
from tests.reporting.design_case import CHECKPOINTS, SLICES, TASKS, write_design_case

SECONDS = 2.0


@pytest.fixture(scope="module")
def results(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The browser comes first, as nothing is written where there is none."""
    root = tmp_path_factory.mktemp("design")
    write_design_case(root)
    return root / "results"


def test_all_checkpoints_are_there(browser: Browser, results: Path) -> None:
    page = results / "mix" / "report.html"
    assert page.stat().st_size < LARGEST
    with opened(browser, page) as shown:
        assert shown.evaluate("performance.now()") < 1000 * SECONDS * slowness()
        ranking = shown.locator("table.ranking tbody tr")
        assert ranking.count() == CHECKPOINTS
        height = ranking.last.bounding_box()["y"] - ranking.first.bounding_box()["y"]
        assert height < 2 * 1000  # two screens
        columns = shown.locator("#matrix thead th").all_inner_texts()
        assert columns[1:3] == ["bridge", "step 500"]
        assert len(columns) == CHECKPOINTS + 2
        assert shown.locator("#matrix .scroll").evaluate("box => box.scrollLeft") == 0
        shown.locator("#deltas-flag").select_option("better")
        shown.locator("#deltas-of").select_option("chosen")
        steps = shown.locator("#deltas tbody td:first-child").all_inner_texts()
        assert 0 < len(steps) < TASKS + SLICES + 20
        assert set(steps) == {shown.locator("#step").input_value()}


def test_an_ablation_branches_off(browser: Browser, results: Path) -> None:
    with opened(browser, results / "report.html") as shown:
        card = shown.locator("#curves section").first
        main, ablation = card.locator("polyline.curve").all()
        at = [line.get_attribute("points").split() for line in (main, ablation)]
        assert ablation.get_attribute("points").split()[0] in at[0]
        assert len(at[1]) == 1 + 4  # where it branched off, and its own checkpoints
        names = card.locator("svg text").all_text_contents()
        assert {"web", "mix"} <= set(names)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", ["report.html", "mix/report.html"])
def test_everybody_can_read_it(browser: Browser, results: Path, name: str, width: int) -> None:
    with opened(browser, results / name, width=width) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(shown)[1] == []


def slowness() -> float:
    """How many times slower than a plain laptop this machine is now."""
    begin = time.perf_counter()
    sum(number * number for number in range(2_000_000))
    return max(1.0, (time.perf_counter() - begin) / 0.15)
