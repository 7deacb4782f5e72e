"""Pages as they are read: by keyboard and on a telephone, from link to link, in one unit, on paper."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side
from tests.reporting.browser import opened
from tests.reporting.pages import write_report
from tests.reporting.test_flips import write_task

STEPS = (20, 30, 200)
PAPER = 718
"""Pixels across A4 less its margins."""


def write_pages(root: Path, *, gain: float) -> dict[str, StagePlan]:
    """Both stages and the front page; steps gain evenly."""
    plans = make_plans(root, steps=STEPS)
    first, second = plans["first"], plans["second"]
    same = {"checkpoint_identity": "shared", "checkpoint": "/ckpts/first/100"}
    about = {"packages": {"torch": ("2.13.0",)}, "device": "cpu", "dtype": "float32"}
    write_side(first.step_folder(100), first, step=100, **same, **about)
    write_side(second.bridge_folder, second, step=100, **same, **about)
    for place, step in enumerate(STEPS):
        nats, skill = 3 - gain * place / 10, gain * (place + 1)
        folder = second.step_folder(step)
        write_side(folder, second, step=step, skill=skill, nats=nats, seed=step, **about)
        write_deltas(second, step)
    write_stage(second, STEPS)
    for plan, steps in ((first, (100,)), (second, STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
        write_task(plan, "quiz", "quiz") if plan is second else None
        write_report(plan, steps)
    write_front_page(plans, first.results.parent / "report.html")
    return plans


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plans = write_pages(tmp_path_factory.mktemp("reading"), gain=0.5)
    return plans["first"].results.parent


@pytest.fixture
def stage(browser: Browser, results: Path) -> Iterator[Page]:
    with opened(browser, results / "second" / "report.html") as page:
        yield page


def axe() -> Path:
    """The program that finds what keeps people from reading a page."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("no axe_playwright_python: pip install -r requirements-dev.lock")
    return Path(found.submodule_search_locations[0]) / "axe.min.js"


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light")])
@pytest.mark.parametrize("name", ["report.html", "first/report.html", "second/report.html"])
def test_nothing_keeps_people_from_reading_it(
    browser: Browser, results: Path, name: str, width: int, scheme: str
) -> None:
    """axe finds no violation of any of its rules, with what can be opened open."""
    program = axe().read_text(encoding="utf-8")
    with opened(browser, results / name, width=width, scheme=scheme) as page:
        for summary in page.locator("details > summary:visible").all()[:4]:
            summary.click()
        page.evaluate(program)
        found: dict[str, Any] = page.evaluate("axe.run()")
    told = [
        f"{one['id']} ({one['impact']}): {node['html'][:120]}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]
    assert told == []
    assert len(found["passes"]) > 20


def test_from_the_front_page_to_a_flip_and_back(browser: Browser, results: Path) -> None:
    beside = results / "second" / "report.html", results / "report.html"
    with opened(browser, results / "report.html", beside=beside) as page:
        page.locator(".stage").get_by_role("link", name="second").click()
        page.locator("#data[data-state=drawn]").wait_for(state="attached")
        assert page.url == (results / "second" / "report.html").as_uri()
        page.locator("#matrix").get_by_role("button", name="quiz").click()
        assert page.url.endswith("#item=tier3/quiz")
        assert page.locator("#flips h3").all_inner_texts() == ["quiz"]
        flip = page.locator("#flips details").first
        flip.locator("summary").click()
        number = flip.get_attribute("data-id")
        assert unquote(page.url).endswith(f"#step=200&item=tier3/quiz&flip=tier3/quiz:{number}")
        trail = page.get_by_role("navigation", name="Where you are")
        assert trail.get_by_role("listitem").all_inner_texts() == [
            *("All stages", "second", "step 200", "tier3 quiz", f"tier3 quiz, {number}"),
        ]
        address = page.url
        page.go_back()
        assert page.url.endswith("#item=tier3/quiz")
        trail.get_by_role("link", name="second").click()
        assert page.locator("#item").input_value() == ""
        assert len(page.locator("#flips h3").all_inner_texts()) > 1
        page.goto("about:blank")
        page.goto(address)
        shown = page.locator(f"#flips details[data-id='{number}']")
        shown.locator("table").wait_for()
        assert page.locator("#item").input_value() == "tier3/quiz"
        box = shown.bounding_box()
        assert box is not None
        assert -20 <= box["y"] < 1000
        trail.get_by_role("link", name="All stages").click()
        page.locator(".stage").first.wait_for()


def test_one_step_for_the_whole_page(stage: Page) -> None:
    assert stage.locator("select[id*=step]").count() == 1
    assert stage.locator("#step").input_value() == "200"
    stage.locator("#matrix").get_by_role("button", name="step 30").click()
    assert stage.locator("#step").input_value() == "30"
    assert stage.locator("#matrix .picked").inner_text() == "step 30"
    assert "step 30 less the bridge" in (stage.locator("#forest").text_content() or "")
    stage.locator("#step").select_option("20")
    assert stage.url.endswith("#step=20")
    assert "step 20 less the bridge" in (stage.locator("#forest").text_content() or "")


def test_a_preview_tells_flips_apart(stage: Page) -> None:
    stage.locator("#item").select_option("tier3/quiz")
    flip = stage.locator("#flips details").first
    number = (flip.get_attribute("data-id") or "").removeprefix("quiz/")
    assert flip.locator(".preview").inner_text().strip() == f"</script><b>Why {number}?"


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


UNITS = {"nats_per_token": "nats per token", "bits_per_byte": "bits per byte", "ppl": "perplexity"}


@pytest.mark.parametrize("unit", UNITS)
def test_one_unit_for_the_whole_page(browser: Browser, results: Path, unit: str) -> None:
    others = [words for name, words in UNITS.items() if name != unit]
    for name in ("report.html", "second/report.html"):
        with opened(browser, results / name) as page:
            page.locator("#unit").select_option(unit)
            places = ["#curves", "#matrix" if "second" in name else "#retention"]
            places += ["#forest section:first-child"] if "second" in name else []
            for place in places:
                text = page.locator(place).text_content() or ""
                assert UNITS[unit] in text, (name, place)
                assert not [words for words in others if words in text], (name, place)


def test_margins_have_units(stage: Page) -> None:
    text = stage.locator("main").inner_text()
    assert "keep within 0.02 nats per token" in text
    assert "improve by more than 0 points" in text


def test_bands_are_paired_until_asked_otherwise(stage: Page) -> None:
    """An interval over items holds how much items differ, so it is the wider one."""

    def height() -> float:
        points = stage.locator("#curves .band").nth(1).get_attribute("points") or ""
        places = [tuple(map(float, pair.split(","))) for pair in points.split()]
        first = [y for x, y in places if x == places[0][0]]
        ticks = stage.locator("#curves section").nth(1).locator("line.axis").count()
        assert ticks >= 5
        return max(first) - min(first)

    paired = height()
    stage.locator("#band").select_option("items")
    assert stage.url.endswith("#band=items")
    assert 0 < paired < height()


def test_axes_are_named_and_have_ticks(browser: Browser, results: Path) -> None:
    for name in ("report.html", "second/report.html"):
        with opened(browser, results / name) as page:
            for card in page.locator("#curves section").all():
                texts = card.locator("svg text").all_text_contents()
                assert "nats per token (lower is better)" in texts
                assert "step" in texts
                left = card.locator("svg text[text-anchor=end]").all_text_contents()
                assert len([text for text in left if text != "step"]) >= 2


def test_noise_is_no_cliff(browser: Browser, tmp_path: Path) -> None:
    """Checkpoints that differ by a point or so are drawn as flat as they are, with a scale beside."""
    plans = write_pages(tmp_path, gain=0.0)
    with opened(browser, plans["first"].results.parent / "report.html") as page:
        spark = page.locator(".spark[data-stage=second] svg")
        points = (spark.locator("polyline").get_attribute("points") or "").split()
        heights = [float(point.split(",")[1]) for point in points]
        assert max(heights) - min(heights) < 76 / 3
        assert spark.locator("text").count() == 2


def test_cards_tell_of_the_recommended_step(browser: Browser, tmp_path: Path) -> None:
    """Even if it is not the last one."""
    plans = write_pages(tmp_path, gain=0.5)
    second = plans["second"]
    write_side(second.step_folder(200), second, step=200, skill=-1.0, nats=3.5, seed=7)
    write_deltas(second, 200)
    write_stage(second, STEPS)
    page = second.results.parent / "report.html"
    write_front_page(plans, page)
    with opened(browser, page) as shown:
        told = shown.locator(".headline[data-stage=second]").inner_text()
    assert "at step 30, bridge" in told
    assert "[" in told


def test_the_strip_says_where_numbers_come_from(browser: Browser, results: Path) -> None:
    for name, own in (("report.html", "second (3 steps)"), ("second/report.html", "step 200")):
        with opened(browser, results / name) as page:
            strip = page.locator(".strip")
            terms = strip.locator("dt").all_inner_texts()
            assert {"run", "configuration", "code", "packages", "device", "dtype"} <= set(terms)
            text = strip.inner_text()
            assert own in text
            assert "torch 2.13.0" in text
            assert "written 20" in text
            box = strip.bounding_box()
            assert box is not None
            assert box["y"] < 200


def test_details_come_before_the_flips(stage: Page) -> None:
    places = [
        box["y"]
        for box in (
            stage.locator(one).first.bounding_box()
            for one in (".strip", "details.about", "#trust", "#turned")
        )
        if box is not None
    ]
    assert places == sorted(places)
    assert len(places) == 4


def test_a_saved_figure_says_what_it_is(stage: Page, tmp_path: Path) -> None:
    names = {}
    for place, words in (("#curves", "web"), ("#forest", "tier3: Δ accuracy")):
        with stage.expect_download() as download:
            stage.locator(place).get_by_role("button", name=f"save {words} as SVG").click()
        download.value.save_as(tmp_path / "figure.svg")
        root = ElementTree.parse(tmp_path / "figure.svg").getroot()
        texts = [root.findtext("{*}title") or "", root.findtext("{*}desc") or ""]
        names[download.value.suggested_filename] = texts
    assert names["second_tier2_web_nats_per_token_curve.svg"] == [
        "second · Perplexity · web · nats per token · steps 20 to 200",
        "across: step, up: nats per token, nats per token",
    ]
    assert names["second_tier3_acc_forest_step-200.svg"] == [
        "second · Ranked choices · accuracy · step 200 against the bridge",
        "across: Δ accuracy, fraction",
    ]


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


def test_on_paper_no_column_is_cut(browser: Browser, results: Path) -> None:
    for name in ("report.html", "second/report.html"):
        with opened(browser, results / name, width=PAPER, media="print") as page:
            assert page.evaluate(OVERFLOWING) == []
            scrolled = "() => [...document.querySelectorAll('.scroll')].filter((n) => n.checkVisibility() && n.scrollWidth > n.clientWidth + 1).map((n) => n.ariaLabel)"
            assert page.evaluate(scrolled) == []
            assert page.evaluate(BROKEN) == []
            assert not page.locator("select:visible").count()


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


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_text_is_large_enough(browser: Browser, results: Path, width: int) -> None:
    for name in ("report.html", "second/report.html"):
        with opened(browser, results / name, width=width) as page:
            assert page.evaluate(SMALL) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_recommended_row_is_readable_on_a_telephone(browser: Browser, results: Path) -> None:
    with opened(browser, results / "second" / "report.html", width=390) as page:
        rows = page.locator("table.verdicts").first.locator("tbody tr")
        chosen = page.locator("table.verdicts .chosen")
        box = chosen.bounding_box()
        tops = [other["y"] for other in (row.bounding_box() for row in rows.all()) if other]
        assert box is not None
        assert box["y"] == min(tops)
        assert box["width"] <= 390
        assert "nats per token" in chosen.inner_text() or chosen.locator("[data-name]").count() == 3


def test_tips_go_away(browser: Browser, results: Path) -> None:
    with opened(browser, results / "second" / "report.html", width=390) as page:
        tip = page.get_by_role("status")
        for leave in (
            lambda: page.keyboard.press("Escape"),
            lambda: page.evaluate("window.scrollBy(0, 40)"),
        ):
            page.locator("#curves .hit").first.hover(force=True)
            tip.wait_for()
            leave()
            tip.wait_for(state="hidden")
