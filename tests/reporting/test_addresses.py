"""What a reader has chosen can be sent, saved and found again; what is not there is named."""

import csv
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlparse

import pytest
from playwright.sync_api import Browser, Page

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.stage_files import Recommendation
from tests.bridge.folders import write_side
from tests.reporting.browser import both, numbers, opened, saved
from tests.reporting.pages import LATER_STEPS, write_pages, write_report


def chosen(page: Page) -> dict[str, str]:
    """What stands in the address."""
    return dict(parse_qsl(urlparse(page.url).fragment))


def shown(page: Page) -> tuple[list[str], ...]:
    """What stands in fields, curves and tables."""
    fields = page.locator("input:visible, select:visible").all()
    places = ("#curves h4, #curves svg text", "#deltas tr")
    texts = [page.locator(place).all_text_contents() for place in places]
    return [field.input_value() for field in fields], *texts


SORT = "#deltas th[data-name=delta] button"
CHOICES: list[tuple[str, list[tuple[str, str, str]], str]] = [
    (
        "second/report",
        [
            ("#metric", "select_option", "tier3 gold_bits_per_byte"),
            ("#item-filter", "fill", "qu"),
            ("#search", "fill", "quiz better"),
            (SORT, "press", "Enter"),
            (SORT, "press", "Enter"),
        ],
        "metric=tier3 gold_bits_per_byte&find=qu&search=quiz better&sort=-delta",
    ),
    ("report", [("#unit", "select_option", "bits_per_byte")], "unit=bits_per_byte"),
    (
        "comparison",
        [
            ("#metric", "select_option", "tier3 acc"),
            ("#search", "fill", "tier3"),
            (SORT, "press", "Enter"),
            ("#axis", "select_option", "tokens"),
            ("#pair", "select_option", "a against c, second"),
        ],
        "metric=tier3 acc&search=tier3&sort=delta&axis=tokens&pair=a against c, second",
    ),
]


@pytest.mark.parametrize(("name", "steps", "expected"), CHOICES, ids=[row[0] for row in CHOICES])
def test_what_is_chosen_can_be_sent(
    browser: Browser, written: Path, compared: Path, name: str, steps: Any, expected: str
) -> None:
    """And the last choice can be undone."""
    file = (compared if name == "comparison" else written) / f"{name}.html"
    with opened(browser, file) as page:
        seen = [shown(page)]
        for selector, how, words in steps:
            getattr(page.locator(selector), how)(words)
            seen.append(shown(page))
        assert chosen(page) == dict(parse_qsl(expected))
        address = urlparse(page.url).fragment
        page.go_back()
        assert shown(page) == seen[-2]
    assert seen[-1] not in seen[:-1]
    with opened(browser, file, at=f"#{address}") as page:
        assert shown(page) == seen[-1]
        assert not page.locator("#unknown").is_visible()


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("second/report", "step=999", "step 999, which this page does not have; step 200 is shown"),
        ("second/report", "item=tier3/none", "item tier3/none, which this page does not have"),
        ("second/report", "unit=miles", "unit miles, .*; unit nats_per_token is shown"),
        ("second/report", "sort=colour", "sort colour, .*; sort step is shown"),
        ("second/report", "step=999&change=up", "step 999, .* asks for change up, which"),
        ("report", "item=tier3/quiz", "item tier3/quiz, which"),
        ("comparison", "pair=none", "pair none, .*; pair a against b, second is shown"),
    ],
)
def test_what_the_page_does_not_have_is_named(
    browser: Browser, written: Path, compared: Path, name: str, asked: str, words: str
) -> None:
    file = (compared if name == "comparison" else written) / f"{name}.html"
    with opened(browser, file, at=f"#{asked}") as page:
        note = page.locator("#unknown")
        assert re.search(f"asks for {words}", note.inner_text())
        page.locator("#unit").select_option("ppl")
        assert not note.is_visible()


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
        for row in StepDeltas.read(folder / "bridge_deltas.json").deltas
        if row.tier == "tier3"
    }
    found = [dict(zip(head, row, strict=True)) for row in rows]
    assert {(row["item"], row["metric"]) for row in found} == set(known)
    for row in found:
        expected = known[row["item"], row["metric"]]
        assert row["flag"] == (expected.flag or "")
        assert float(row["bridge"]) == pytest.approx(expected.bridge_value, rel=1e-6)
        for name in ("value", "delta", "low", "high", "p_holm", "mde"):
            value = getattr(expected, name)
            own = float(row[name]) if row[name] else None
            assert own == (value if value is None else pytest.approx(value, rel=1e-6)), name
    head, *rows = table(stage, "save scores of all steps as CSV", tmp_path)
    assert head == ["item", "bridge", "step 20", "step 30", "step 200"]
    second = written / "second"
    folders = [second / "bridge", *(second / f"by_checkpoint/step_{n}" for n in LATER_STEPS)]
    tasks = [json.loads((folder / "tier3_cf.json").read_text())["tasks"] for folder in folders]
    (quiz,) = [row for row in rows if row[0] == "quiz"]
    accuracies = [one["quiz"]["accuracy"] for one in tasks]
    assert [float(cell) for cell in quiz[1:]] == pytest.approx(accuracies, rel=1e-6)
    names = {path.name for path in tmp_path.glob("*.csv")}
    assert names == {"second_deltas.csv", "second_scores-of-all-steps.csv"}


def test_the_chosen_checkpoint_comes_first(browser: Browser, tmp_path: Path) -> None:
    """Also where it is not the last one, and on its card; what others lack is folded."""
    plans = write_pages(tmp_path)
    second = plans["second"]
    write_side(second.step_folder(200), second, step=200, skill=-1.0, nats=3.5, seed=7)
    write_deltas(second, 200)
    write_stage(second, LATER_STEPS)
    with opened(browser, write_report(second, LATER_STEPS), width=390) as page:
        rows = page.locator("table.verdicts").first.locator("tbody tr")
        steps = [row.locator("td.name").inner_text() for row in rows.all()]
        assert steps == ["step 30", "step 20", "step 200"]
        assert rows.first.locator("details").count() == 0
        reason = page.locator(".reason summary").last
        line = reason.bounding_box()
        reason.click()
        whole = reason.bounding_box()
        assert "significantly worse: quiz, exam" in reason.inner_text()
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
    assert re.search(r"\[.* at step 30, 40.25 % at first/100", headline)


HIGHEST_IS = """([selectors, first]) => {
    const top = selector => document.querySelector(selector).getBoundingClientRect().top;
    return selectors.every(selector => top(first) <= top(selector));
}"""


def test_the_decision_comes_first_and_the_provenance_last(browser: Browser, written: Path) -> None:
    for name, page in both(browser, written):
        verdict = "#objective" if "second" in name else ".stages"
        for media in ("screen", "print"):
            page.emulate_media(media=media)
            for parts, first in (
                ((verdict, ".provenance"), ".decided"),
                ((".provenance",), verdict),
            ):
                page.wait_for_function(HIGHEST_IS, arg=[[*parts], first])


def test_a_group_has_one_number(browser: Browser, tmp_path: Path) -> None:
    """On the front page's card, in the table of verdicts, in the heat map and under its name."""
    objectives = [{"tier": "tier2", "group": "hq", "want": "improve", "margin": 0.01}]
    plans = write_pages(tmp_path, objective=objectives)
    second = plans["second"]
    advised = Recommendation.read(second.results / "recommendation.json")
    value = f"{advised.headline.value:.4f}"
    with opened(browser, write_front_page(plans)) as page:
        cards = page.locator(".card.stage").all_text_contents()
        assert advised.verdict in cards[0]  # the latest stage comes first
        assert f"Recommended: step {advised.step}" in cards[0]
        assert "no recommendation" in cards[1]
        headline = page.locator(".headline[data-stage=second]").inner_text()
        assert headline.startswith("Perplexity (tier2), nats per token of hq: ")
        assert pytest.approx(advised.headline.value, rel=1e-3) == numbers(headline)[1]
    with opened(browser, write_report(second, LATER_STEPS)) as page:
        row = page.locator("#matrix tr").filter(has_text="hq (group)")
        place = [0, *LATER_STEPS].index(advised.step or 0)
        assert row.locator("td").nth(place).inner_text().strip() == value
        assert "hq (group)" in page.locator("#curves h4").all_inner_texts()
        verdict = page.locator("table.verdicts .chosen").inner_text()
        delta = advised.headline.value - advised.headline.bridge_value
        assert f"{delta:+.4f} [" in verdict
        assert "change in nats per token" in page.locator("table.verdicts thead").text_content()
        reason = page.locator("#checkpoint + p").inner_text()
        assert f"nats per token of hq {headline.split()[7]} (bridge" in reason
