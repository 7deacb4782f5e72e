"""Figures and numbers as they are read: one unit, named axes, a scale, and where they come from."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from tests.reporting.browser import both, opened, saved
from tests.reporting.pages import write_pages

UNITS = {"nats_per_token": "nats per token", "bits_per_byte": "bits per byte", "ppl": "perplexity"}


@pytest.mark.parametrize("unit", UNITS)
def test_one_unit_for_the_whole_page(browser: Browser, written: Path, unit: str) -> None:
    others = [words for name, words in UNITS.items() if name != unit]
    for name, page in both(browser, written):
        page.locator("#unit").select_option(unit)
        places = ["#curves"]
        places += ["#matrix", "#forest section:first-child"] if "second" in name else []
        for place in places:
            text = page.locator(place).text_content() or ""
            assert UNITS[unit] in text, (name, place)
            assert not [words for words in others if words in text], (name, place)


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


def test_noise_is_no_cliff(browser: Browser, tmp_path: Path) -> None:
    """Checkpoints that differ by a point or so are drawn as flat as they are, with a scale beside."""
    plans = write_pages(tmp_path, gain=0.0)
    with opened(browser, plans["first"].results.parent / "report.html") as page:
        spark = page.locator(".spark[data-stage=second] svg")
        points = (spark.locator("polyline").get_attribute("points") or "").split()
        heights = [float(point.split(",")[1]) for point in points]
        assert max(heights) - min(heights) < 76 / 3
        assert spark.locator("text").count() == 2


def test_the_header_says_where_numbers_come_from(browser: Browser, written: Path) -> None:
    known = {
        "report.html": ("second (3 checkpoints)", "Evaluation of the stages · results"),
        "second/report.html": ("step 200", "second · results"),
    }
    for name, page in both(browser, written):
        own, title = known[name]
        assert page.title() == title
        header = page.locator(".provenance")
        terms = header.locator("dt").all_inner_texts()
        assert {"run", "configuration", "code", "packages", "device", "dtype"} <= set(terms)
        for words in (own, "torch 2.13.0", "written 20"):
            assert words in header.inner_text()
        assert header.bounding_box()["y"] > page.locator("h2").last.bounding_box()["y"]


def test_a_saved_figure_draws_by_itself_and_says_what_it_is(
    browser: Browser, written: Path, tmp_path: Path
) -> None:
    """With the whole names that a narrow screen cuts."""
    with opened(browser, written / "second" / "report.html", width=390) as page:
        curves, forests = page.locator("#curves"), page.locator("#forest section")
        drawn = forests.last.locator("svg text").all_text_contents()
        curve, forest, rates = (
            saved(page, place.get_by_role("button", name=name), tmp_path)
            for place, name in (
                (curves, "save web as SVG"),
                (forests, "save Ranked choices (tier3): Δ accuracy as SVG"),
                (forests.last, "SVG"),
            )
        )
    words = {}
    for path in (curve, forest, rates):
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in path.read_text()
        words[path.name] = [root.findtext("{*}title"), root.findtext("{*}desc")]
    for text in ('stroke="rgb', ">nats per token (lower is better)</text>", ">step</text>"):
        assert text in curve.read_text()
    assert words["second_tier2_web_nats_per_token_curve.svg"] == [
        "second · Perplexity · web · nats per token · steps 20 to 200",
        "across: step, up: nats per token",
    ]
    assert words["second_tier3_acc_forest_step-200.svg"] == [
        "second · Ranked choices · accuracy · step 200 against the bridge",
        "across: Δ accuracy, points",
    ]
    assert any("…" in name for name in drawn)
    assert "…" not in rates.read_text()
    for name in ("instruction_match_rate</text>", "minus the bridge</text>"):
        assert name in rates.read_text()
