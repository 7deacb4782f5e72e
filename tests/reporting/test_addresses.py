"""What a reader has chosen can be sent, saved and found again; what is not there is named."""

import csv
import re
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, Page

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.results.deltas_file import read_step_deltas
from evaluation.results.stage_files import read_recommendation
from tests.bridge.folders import write_side
from tests.reporting.browser import both, numbers, opened, saved
from tests.reporting.pages import LATER_STEPS, write_pages, write_report


def chosen(page: Page) -> dict[str, str]:
    """What stands in the address."""
    return {key: value for key, (value,) in parse_qs(urlparse(page.url).fragment).items()}


def shown(page: Page) -> tuple[str, list[str], str, list[str]]:
    """Metric, curves, sorted column and the values of deltas."""
    sort = page.locator("#deltas th[aria-sort$='cending']")
    return (
        page.locator("#metric").input_value(),
        page.locator("#curves h4").all_inner_texts(),
        f"{sort.get_attribute('data-name')} {sort.get_attribute('aria-sort')}",
        page.locator("#deltas tbody tr").all_inner_texts(),
    )


def test_metric_search_and_sort_can_be_sent(browser: Browser, stage: Page, written: Path) -> None:
    begun = shown(stage)
    stage.locator("#metric").select_option("tier3 gold_bits_per_byte")
    stage.locator("#item-filter").fill("qu")
    stage.locator("#search").fill("quiz better")
    for _ in range(2):
        stage.locator("#deltas th[data-name=delta] button").click()
    expected = {
        "metric": "tier3 gold_bits_per_byte",
        "find": "qu",
        "search": "quiz better",
        "sort": "-delta",
    }
    assert chosen(stage) == expected
    before = shown(stage)
    assert before[1:3] == (["quiz"], "delta descending")
    address = urlparse(stage.url).fragment
    assert before != begun
    with opened(browser, written / "second" / "report.html", at=f"#{address}") as page:
        assert shown(page) == before
        assert page.locator("#search").input_value() == "quiz better"
        assert not page.locator("#unknown").is_visible()


def test_typing_is_no_step_of_the_way_back(stage: Page) -> None:
    stage.locator("#step").select_option("20")
    stage.locator("#search").press_sequentially("quiz")
    stage.go_back()
    assert stage.locator("#step").input_value() == "200"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("step=999", "asks for step 999, which this page does not have; step 200 is shown"),
        ("item=tier3/none", "asks for item tier3/none, which this page does not have"),
        ("unit=miles", "asks for unit miles, .*; unit nats_per_token is shown"),
        ("metric=tier9", "asks for metric tier9, which"),
        ("flip=tier3/quiz:none", "asks for flip tier3/quiz:none, which"),
        ("sort=colour", "asks for sort colour, .*; sort step is shown"),
        ("stop=20", "asks for stop 20, which this page does not have"),
        ("step=999&change=up", "asks for step 999, .* asks for change up, which"),
    ],
)
def test_what_the_page_does_not_have_is_named(
    browser: Browser, written: Path, asked: str, words: str
) -> None:
    with opened(browser, written / "second" / "report.html", at=f"#{asked}") as page:
        note = page.locator("#unknown")
        assert re.search(words, note.inner_text())
        assert page.locator("#step").input_value() == "200"
        page.locator("#step").select_option("20")
        assert not note.is_visible()


def test_an_address_that_is_edited_is_read(stage: Page) -> None:
    """While the page is open; the note goes with what it was about."""
    note = stage.locator("#unknown")
    for asked in ("sort=colour", "metric=tier9"):
        stage.evaluate(f"window.location.hash = '#{asked}'")
        note.wait_for()
        assert asked.replace("=", " ") in note.inner_text()
        stage.go_back()
        note.wait_for(state="hidden")
    assert shown(stage)[2] == "step ascending"


def test_an_open_flip_is_found_whatever_was_searched_for(browser: Browser, written: Path) -> None:
    file = written / "second" / "report.html"
    with opened(browser, file, beside=(file,)) as page:
        flip = page.locator("#flips details").first
        number = flip.get_attribute("data-id")
        flip.locator("summary").click()
        page.locator("#flip-change").select_option("same")
        page.locator("#flip-search").fill("no such words")
        assert chosen(page)["change"] == "same"
        page.reload()
        page.locator("#data[data-state=drawn]").wait_for(state="attached")
        assert page.locator("#flips details[open]").get_attribute("data-id") == number
        assert not page.locator("#unknown").is_visible()


def test_what_retention_is_against_can_be_sent(browser: Browser, written: Path) -> None:
    file = written / "report.html"
    with opened(browser, file) as page:
        other = page.locator("#against option").nth(1).inner_text()
        before = page.locator("#retention").inner_html()
        page.locator("#against").select_option(other)
        assert chosen(page) == {"against": other}
        table = page.locator("#retention").inner_html()
        page.go_back()
        assert page.locator("#against").input_value() == ""
        assert page.locator("#retention").inner_html() == before
    with opened(browser, file, at=f"#against={other}") as page:
        assert page.locator("#against").input_value() == other
        assert page.locator("#retention").inner_html() == table
    with opened(browser, file, at="#against=nowhere/5&item=tier3/quiz") as page:
        note = page.locator("#unknown").inner_text()
        assert "asks for against nowhere/5, which this page does not have" in note
        assert "asks for item tier3/quiz, which" in note


def table(page: Page, name: str, folder: Path) -> list[list[str]]:
    """The rows that a button saves."""
    path = saved(page, page.get_by_role("button", name=name, exact=True), folder)
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_table_is_saved_as_it_is_shown(stage: Page, written: Path, tmp_path: Path) -> None:
    """All rows that are found, with the values of the files."""
    stage.locator("#search").fill("step 30 tier3")
    head, *rows = table(stage, "save deltas as CSV", tmp_path)
    folder = written / "second" / "by_checkpoint" / "step_30"
    known = {
        (row.item, row.metric.removeprefix("delta_")): row
        for row in read_step_deltas(folder / "bridge_deltas.json").deltas
        if row.tier == "tier3"
    }
    found = [dict(zip(head, row, strict=True)) for row in rows]
    assert {(row["item"], row["metric"]) for row in found} == set(known)
    for row in found:
        expected = known[row["item"], row["metric"]]
        assert float(row["delta"]) == pytest.approx(expected.delta, rel=1e-6)
        assert row["flag"] == (expected.flag or "")
    head, *rows = table(stage, "save scores of all steps as CSV", tmp_path)
    assert head == ["item", "bridge", "step 20", "step 30", "step 200"]
    assert len(rows[1]) == 5
    assert all(len(numbers(cell)) == 1 for cell in rows[1][1:])
    assert [path.name for path in sorted(tmp_path.glob("*.csv"))] == [
        *("second_deltas.csv", "second_scores-of-all-steps.csv")
    ]


def test_flips_are_searched(stage: Page) -> None:
    def ids() -> list[str | None]:
        return [box.get_attribute("data-id") for box in stage.locator("#flips details").all()]

    everything = ids()
    stage.locator("#flip-search").fill("b>Why 17?")
    assert ids() == [name for name in everything if name == "quiz/17"]
    stage.locator("#flip-search").fill("no such words")
    assert ids() == []
    assert "has these words" in stage.locator("#flips").inner_text()
    stage.locator("#flip-search").fill("")
    assert ids() == everything


def test_the_chosen_checkpoint_comes_first(browser: Browser, tmp_path: Path) -> None:
    """Also where it is not the last one, and on its card; what others lack is folded."""
    plans = write_pages(tmp_path)
    second = plans["second"]
    write_side(second.step_folder(200), second, step=200, skill=-1.0, nats=3.5, seed=7)
    write_deltas(second, 200)
    write_stage(second, LATER_STEPS)
    with opened(browser, write_report(second, LATER_STEPS), width=390) as page:
        rows = page.locator("table.verdicts").first.locator("tbody tr")
        steps = [row.locator("td").first.inner_text() for row in rows.all()]
        assert steps == ["30", "20", "200"]
        assert rows.first.locator("details").count() == 0
        folded = rows.last.locator("details").first
        assert "significantly worse" not in folded.inner_text()
        folded.locator("summary").click()
        assert "significantly worse" in folded.inner_text()
        reason = page.locator(".reason summary").last
        line = reason.bounding_box()
        reason.click()
        whole = reason.bounding_box()
        assert line["height"] < 30 < whole["height"]
        box = page.locator("#matrix .scroll")
        for step in ("200", "20", "30"):
            page.locator("#step").select_option(step)
            cell, frame = page.locator("#matrix .picked").bounding_box(), box.bounding_box()
            names = page.locator("#matrix thead th").first.bounding_box()
            assert frame["x"] + names["width"] - 1 <= cell["x"]
            assert cell["x"] + cell["width"] <= frame["x"] + frame["width"] + 1
    with opened(browser, write_front_page(plans)) as page:
        headline = page.locator(".headline[data-stage=second]").inner_text()
    assert re.search(r"\[.* at step 30, bridge", headline)


HIGHEST_IS = """([selectors, first]) => {
    const top = selector => document.querySelector(selector).getBoundingClientRect().top;
    return selectors.every(selector => top(first) <= top(selector));
}"""


def test_on_paper_the_verdict_comes_first(browser: Browser, written: Path) -> None:
    for name, page in both(browser, written):
        verdict = "#objective" if "second" in name else ".stages"
        for media in ("screen", "print", "screen"):
            first = verdict if media == "print" else ".provenance"
            page.emulate_media(media=media)
            # The page moves its parts when its next frame is drawn.
            page.wait_for_function(HIGHEST_IS, arg=[[".provenance", verdict], first])


def test_a_group_has_one_number(browser: Browser, tmp_path: Path) -> None:
    """On the front page's card, in the table of verdicts, in the heat map and under its name."""
    objectives = [{"tier": "tier2", "group": "hq", "want": "improve", "margin": 0.01}]
    plans = write_pages(tmp_path, objective=objectives)
    second = plans["second"]
    advised = read_recommendation(second.results / "recommendation.json")
    value = f"{advised.headline.value:.4f}"
    with opened(browser, write_front_page(plans)) as page:
        headline = page.locator(".headline[data-stage=second]").inner_text()
        assert headline.startswith("tier2 nats per token of hq: ")
        assert pytest.approx(advised.headline.value, rel=1e-3) == numbers(headline)[1]
    with opened(browser, write_report(second, LATER_STEPS)) as page:
        row = page.locator("#matrix tr").filter(has_text="hq (group)")
        place = [0, *LATER_STEPS].index(advised.step or 0)
        assert row.locator("td").nth(place).inner_text().strip() == value
        assert "hq (group)" in page.locator("#curves h4").all_inner_texts()
        verdict = page.locator("table.verdicts .chosen").inner_text()
        delta = advised.headline.value - advised.headline.bridge_value
        assert f"{delta:+.4f} [" in verdict
        assert "nats per token" in verdict
        reason = page.locator("#checkpoint + p").inner_text()
        assert f"nats per token of hq {headline.split()[6]} (bridge" in reason
