"""Pages as they are read: by keyboard and on a telephone, from link to link, in one unit, on paper."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Page

from tests.conftest import ROOT
from tests.reporting.browser import both, contrast, opened, violations
from tests.tables import sample

PAPER = 718
"""Pixels across A4 less its margins."""


SMALL = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !node.checkVisibility()) continue;
    const drawn = node.ownerSVGElement;
    const scale = drawn ? drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width : 1;
    const size = parseFloat(getComputedStyle(node).fontSize) * scale;
    if (size < 10.9) found.push(`${size}: ${text.data.trim().slice(0, 40)}`);
  }
  return found;
}"""


SCREENS = [(1440, "light"), (800, "dark"), (390, "light")]
READ = ["report", "first/report", "second/report", "comparison"]
PAIRS = [(name, *screen) for name in READ for screen in SCREENS]


@pytest.mark.parametrize(("name", "width", "scheme"), sample(2, PAIRS))
def test_nothing_keeps_people_from_reading_it(
    browser: Browser, written: Path, compared: Path, name: str, width: int, scheme: str
) -> None:
    """Nor is a text too small or too pale, or the page wider than the screen."""
    file = (compared if name == "comparison" else written) / f"{name}.html"
    with opened(browser, file, width=width, scheme=scheme) as page:
        assert page.evaluate(SMALL) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        passed, found = violations(page)
        seen, poor = contrast(page, printed=False)
    assert (found, poor) == ([], {})
    assert passed > 20
    assert seen > 50


def test_from_the_front_page_to_a_flip_and_back(browser: Browser, written: Path) -> None:
    """And to the flip again by an address as docs/report.md has one."""
    beside = written / "second" / "report.html", written / "report.html"
    with opened(browser, written / "report.html", beside=beside) as page:
        page.locator(".stage").get_by_role("link", name="second").click()
        page.locator("#data[data-state=drawn]").wait_for(state="attached")
        assert page.url == (written / "second" / "report.html").as_uri()
        page.locator("#matrix").get_by_role("button", name="quiz").click()
        assert page.url.endswith("#item=tier3/quiz")
        assert page.locator("#flips h3").all_inner_texts() == ["quiz"]
        flip = page.locator("#flips details").first
        flip.locator("summary").click()
        number = flip.get_attribute("data-id") or ""
        assert unquote(page.url).endswith(f"#step=200&item=tier3/quiz&flip=tier3/quiz:{number}")
        trail = page.get_by_role("navigation", name="Where you are")
        assert trail.get_by_role("listitem").all_inner_texts() == [
            *("All stages", "second", "step 200", "tier3 quiz", f"tier3 quiz, {number}")
        ]
        page.go_back()
        assert page.url.endswith("#item=tier3/quiz")
        trail.get_by_role("link", name="second").click()
        assert page.locator("#item").input_value() == ""
        assert len(page.locator("#flips h3").all_inner_texts()) > 1
    documented = re.search(r"report\.html(#step=\S+)`", (ROOT / "docs/report.md").read_text())
    at = documented[1].replace("1000", "200").replace("piqa/12", number).replace("piqa", "quiz")
    with opened(browser, beside[0], at=at, beside=beside) as page:
        shown = page.locator(f"#flips details[data-id='{number}']")
        shown.locator("table").wait_for()
        assert page.locator("#item").input_value() == "tier3/quiz"
        assert -20 <= shown.bounding_box()["y"] < 1000
        assert not page.locator("#unknown").is_visible()
        trail = page.get_by_role("navigation", name="Where you are")
        trail.get_by_role("link", name="All stages").click()
        page.locator(".stage").first.wait_for()


def test_one_step_for_the_whole_page(stage: Page) -> None:
    assert stage.locator("select[id*=step]").count() == 1
    assert stage.locator("#step").input_value() == "200"
    stage.locator("#matrix").get_by_role("button", name="step 30").click()
    assert stage.locator("#step").input_value() == "30"
    assert stage.locator("#matrix .picked").inner_text() == "step 30"
    assert "step 30 minus the bridge" in (stage.locator("#forest").text_content() or "")
    stage.locator("#step").select_option("20")
    assert stage.url.endswith("#step=20")
    assert "step 20 minus the bridge" in (stage.locator("#forest").text_content() or "")


def test_the_focus_stays(stage: Page) -> None:
    """On what was pressed, although it is drawn anew."""
    for place, name in (("#chips", "web"), ("#matrix", "step 20"), ("#matrix", "exam")):
        button = stage.locator(place).get_by_role("button", name=name, exact=True)
        button.focus()
        stage.keyboard.press("Enter")
        focused = stage.evaluate("document.activeElement.textContent")
        assert focused == name, place


def test_whole_words_come_first(stage: Page) -> None:
    def steps(wanted: str) -> set[str]:
        stage.locator("#search").fill(wanted)
        return set(stage.locator("#deltas tbody td:first-child").all_inner_texts())

    assert steps("20") == {"20"}
    assert steps("200") == {"200"}
    assert steps("step 30 quiz") == {"30"}
    stage.locator("#search").fill("acc quiz")
    shown = set(stage.locator("#deltas tbody td.metric").all_inner_texts())
    assert "acc" in shown
    assert "correct_probability" not in shown


OVERFLOWING = """() => [...document.querySelectorAll("main *")].filter((node) => {
  const box = node.getBoundingClientRect();
  return node.checkVisibility() && box.width && (box.right > window.innerWidth + 1 || box.left < -1);
}).map((node) => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 40)}`)"""


BROKEN = """() => [...document.querySelectorAll("td.number")].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size > 1;
}).map((cell) => cell.textContent)"""
"""Numbers on two lines."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_no_column_is_cut_and_no_text_pale(
    browser: Browser, written: Path, scheme: str
) -> None:
    for _, page in both(browser, written, width=PAPER, media="print", scheme=scheme):
        assert page.evaluate(OVERFLOWING) == []
        scrolled = (
            "() => [...document.querySelectorAll('.scroll')].filter((n) => n.checkVisibility() && "
            "n.scrollWidth > n.clientWidth + 1).map((n) => n.ariaLabel)"
        )
        assert page.evaluate(scrolled) == []
        assert page.evaluate(BROKEN) == []
        assert not page.locator("select:visible").count()
        seen, poor = contrast(page, printed=True)
        assert poor == {}
        assert seen > 50


def test_a_table_has_one_unit(stage: Page) -> None:
    """Points for rates and the loss's unit for losses."""
    table = stage.get_by_role("region", name="What each slice and task can detect").locator("table")
    heads = table.locator("th").all_inner_texts()
    rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    units = {}
    for row in rows:
        cells = dict(zip(heads, row, strict=True))
        known = [cells[name].split(" ", 1)[-1] for name in ("to decide",)]
        units[cells["metric"]] = {unit.removesuffix("s") for unit in known if unit != "–"}
    assert units["accuracy"] == {"point"}
    assert units["nats per token"] == {"nats per token"}
