"""The page of several runs in a real browser: it draws, says what the file says, and fetches nothing."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from evaluation.results.comparison_file import Comparison
from tests.reporting.browser import draws, numbers, opened, saved, touch


@pytest.fixture
def content(compared: Path) -> Comparison:
    return Comparison.read(compared / "comparison.json")


def test_a_saved_figure_names_both_runs(browser: Browser, compared: Path, tmp_path: Path) -> None:
    with opened(browser, compared / "comparison.html") as page:
        page.locator("#axis").select_option("tokens")
        curve, forest = (
            saved(page, page.locator(place).get_by_role("button", name="as SVG").first, tmp_path)
            for place in ("#curves", "#forest")
        )
    assert curve.name.startswith("second_tier2_")
    assert "across: tokens seen, up: nats per token<" in curve.read_text()
    assert forest.name == "a-against-b-second_tier2_nats_per_token_forest_step-30.svg"
    assert "a against b, second · " in forest.read_text()
    assert "step 30 against B" in forest.read_text()


def test_a_line_for_each_run(browser: Browser, compared: Path) -> None:
    with opened(browser, compared / "comparison.html") as page:
        assert page.title() == "Runs side by side · a and b and c"
        assert draws(page) > 10
    with opened(browser, compared / "comparison.html") as page:
        assert page.locator("#legend > span").all_inner_texts() == ["a", "b", "c"]
        card = page.locator("#curves section").first
        assert card.locator("polyline.curve").count() == 3
        colours = card.locator("polyline.curve").evaluate_all(
            "(lines) => lines.map((line) => getComputedStyle(line).stroke)"
        )
        assert len(set(colours)) == 3
        touch(card.locator("[data-step='20']").last, page.get_by_role("status"))
        tip = page.get_by_role("status").inner_text()
        assert all(f"{name} step 20: " in tip for name in "abc")
        page.locator("#axis").select_option("tokens")
        card = page.locator("#curves section").first
        assert "tokens seen" in card.inner_text()
        assert card.locator("polyline.curve").count() == 3


def test_three_runs_side_by_side(browser: Browser, compared: Path, content: Comparison) -> None:
    """Who leads since when is the file's; scores are those of the last step that all have."""
    with opened(browser, compared / "comparison.html") as page:
        rows = page.locator("table.leading tbody tr")
        for place, other in enumerate(content.comparisons):
            (stage,) = other.stages
            overall = [lead for lead in stage.leads if lead.item == "overall"]
            for number, lead in enumerate(overall):
                cell = rows.nth(number).locator("td").nth(2 + place).inner_text()
                who = {"A": other.run_a, "B": other.run_b}.get(lead.better or "")
                since = f", since step {lead.since_step_a}" if who else ""
                assert cell == (f"{who}{since}" if who else "not significantly different")
        heads = page.locator("#runs-matrix thead th").all_inner_texts()
        assert heads == ["item", "a, step 20", "b, step 20", "c, step 20"]
        row = page.locator("#runs-matrix tr").filter(has_text="quiz").first
        values = row.locator("td").evaluate_all("(all) => all.map((one) => +one.dataset.value)")
        for number, other in enumerate(content.comparisons, 1):
            acc = next(
                one
                for one in other.stages[0].deltas
                if (one.item, one.step_a) == ("quiz", 20) and one.metric == "delta_acc"
            )
            assert (values[0], values[number]) == pytest.approx((acc.value_a, acc.value_b))


def test_the_forest_shows_the_files_deltas(
    browser: Browser, compared: Path, content: Comparison
) -> None:
    stage = content.comparisons[0].stages[0]
    with opened(browser, compared / "comparison.html") as page:
        assert page.locator("#step").input_value() == "30"
        drawn = page.locator("#forest [data-value]").evaluate_all(
            "(nodes) => nodes.map((node) => Number(node.dataset.value))"
        )
        spoken = {(one.tier, one.item, one.metric) for one in stage.leads}
        expected = [
            row.delta
            for row in stage.deltas
            if row.step_a == 30 and (row.tier, row.item, row.metric) in spoken
        ]
        assert sorted(drawn) == pytest.approx(sorted(expected), rel=1e-5)
        page.locator("#pair").select_option(index=1)
        assert page.locator("#step option").all_inner_texts() == ["20"]
        page.locator("#search").fill("tier3 quiz acc")
        row = page.locator("#deltas tbody tr").first.inner_text()
        other = content.comparisons[1].stages[0].deltas
        acc = next(one for one in other if (one.item, one.metric) == ("quiz", "delta_acc"))
        assert pytest.approx(100 * acc.delta, abs=5e-3) in numbers(row)
