"""The report in a real browser without a network, after a small real run and after the demo."""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from playwright.sync_api import Browser, Page

from tests.conftest import ROOT
from tests.reporting.browser import contrast, draws, figures, numbers, opened, touch
from tests.reporting.conftest import write_up

DEMO = ROOT / ".demo" / "results"
RUNS = ["tiny", "demo"] if (DEMO / "report.html").is_file() else ["tiny"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's results, written up anew by the code as it is."""
    folder = tmp_path_factory.mktemp("report") / "demo"
    shutil.copytree(DEMO, folder / "results")
    config = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text())
    config["results"] = str(folder / "results")
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    with contextlib.chdir(ROOT):  # its other folders are relative ones
        write_up(config["stages"], folder / "config.yaml")
    return folder / "results"


@pytest.fixture(scope="module", params=RUNS)
def results(request: pytest.FixtureRequest, browser: Browser) -> Path:
    """A results folder; the browser comes first, as nothing is scored where there is none."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


FAULTS = {
    "fetch": '<img src="http://192.0.2.1/x.png">',
    "hidden fetch": '<script>fetch("http://192.0.2.1/").catch(() => {})</script>',
    "error": "<script>noSuchFunction()</script>",
    "figure": '<svg viewBox="0 0 9 9"><circle cx="NaN" cy="4" r="3"/></svg>',
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_page_is_noticed(browser: Browser, tmp_path: Path, fault: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><p style="color: #999">pale</p>{FAULTS[fault]}')
    seen: list[Any] = []
    with pytest.raises(AssertionError), opened(browser, page) as shown:  # noqa: PT012
        shown.wait_for_load_state("networkidle")
        seen += [contrast(shown, printed=False), figures(shown)]
    assert seen[0] == (1, {"P.": "2.85: pale"})
    if fault == "figure":
        assert seen[1][0]["broken"] == ["circle cx=NaN"]


def last_step(results: Path) -> Path:
    """The results of the last step of the last stage that has a bridge."""
    stage = max(path.parent for path in results.glob("stage*/bridge"))
    steps = stage.glob("by_checkpoint/step_*")
    return max(steps, key=lambda folder: int(folder.name.removeprefix("step_")))


def stage_page(results: Path) -> Path:
    return last_step(results).parents[1] / "report.html"


def test_every_figure_draws_and_every_text_is_readable(browser: Browser, results: Path) -> None:
    pages = sorted(results.rglob("report.html"))
    assert len(pages) >= 3
    for file in pages:
        with opened(browser, file) as page:
            assert draws(page) > 1
            assert contrast(page, printed=False)[1] == {}


def hovered(page: Page, item: str, step: str) -> list[float]:
    """The numbers that appear over the point of an item's curve."""
    card = page.locator("#curves section").filter(
        has=page.get_by_role("heading", name=item, exact=True)
    )
    tip = page.get_by_role("status")
    touch(card.locator(f"[data-step='{step}']").last, tip)
    assert step in tip.inner_text()
    return numbers(tip.inner_text())


def test_hover_shows_the_value_of_the_json(browser: Browser, results: Path) -> None:
    folder = last_step(results)
    step = folder.name.removeprefix("step_")
    slices = json.loads((folder / "tier2_ppl.json").read_text())["slices"]
    tasks = json.loads((folder / "tier3_cf.json").read_text())["tasks"]
    with opened(browser, stage_page(results)) as page:
        page.locator("#unit").select_option("ppl")
        page.locator("#metric").select_option("tier2 ppl")
        for name, summary in slices.items():
            assert pytest.approx(summary["ppl"], rel=1e-3) in hovered(page, name, step)
        page.locator("#metric").select_option("tier3 acc")
        for name, summary in tasks.items():
            assert pytest.approx(100 * summary["accuracy"], abs=0.1) in hovered(page, name, step)


def test_a_table_is_sorted(browser: Browser, results: Path) -> None:
    with opened(browser, stage_page(results)) as page:
        table = page.locator("#deltas")
        before = table.locator("tbody tr").all_inner_texts()
        head = table.get_by_role("columnheader").filter(has_text="delta").first
        orders = {}
        for _ in range(2):
            head.get_by_role("button").click()
            deltas = map(numbers, table.locator("tbody td:nth-child(8)").all_inner_texts())
            orders[head.get_attribute("aria-sort")] = [found[0] for found in deltas if found]
        assert set(orders) == {"ascending", "descending"}
        assert orders["ascending"] == sorted(orders["ascending"])
        assert orders["descending"] == orders["ascending"][::-1]
        assert len(set(orders["ascending"])) > 2
        assert sorted(table.locator("tbody tr").all_inner_texts()) == sorted(before)


def test_flips_can_be_read(browser: Browser, results: Path) -> None:
    """Closed each is one line; open it has a text, of a question the candidates with their log-probs."""
    with opened(browser, stage_page(results)) as page:
        step, menu, seen = page.locator("#step").input_value(), page.locator("#item"), set()
        kinds = [option.get_attribute("value") or "" for option in menu.locator("option").all()]
        path = last_step(results).with_name(f"step_{step}") / "tier3_cf_candidates.parquet"
        for kind in filter(None, kinds):
            menu.select_option(kind)
            if not page.locator("#flips details").count():
                continue
            flip = page.locator("#flips details").first
            assert not flip.locator("pre").first.is_visible()
            flip.locator("summary").click()
            flip.locator("pre").first.wait_for()
            assert flip.locator("pre").first.inner_text().strip()
            name, _, task = kind.partition("/")
            seen.add(name)
            if name == "tier3":
                of = [("task", "==", task), ("item", "==", flip.get_attribute("data-id"))]
                scores = pq.read_table(path, filters=of)["logprob"].to_pylist()
                assert flip.locator("table tbody tr").count() == len(scores) >= 2
                shown = numbers(" ".join(flip.locator("table td").all_inner_texts()))
                assert all(pytest.approx(score, rel=1e-3) in shown for score in scores)
        assert {"tier2", "tier3"} <= seen
