"""Every number of the pages' tables is that of the files beside them, by its own rule of digits."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from evaluation.settings.tiers import TIERS
from tests.reporting.browser import opened
from tests.reporting.pages import rows_of

MEASURED = ("value", "bridge", "delta", "low", "high", "mde")
ENOUGH = 60


def table_rows(page: Page) -> Iterator[dict[str, str]]:
    """Rows of the table of deltas, by the heads of its columns."""
    if page.locator("#more").is_visible():
        page.locator("#more").click()
    heads = page.locator("#deltas thead th").all_inner_texts()
    for line in page.locator("#deltas tbody tr").all():
        texts = [text.strip(" ▲▼\n") for text in line.locator("td").all_text_contents()]
        yield dict(zip([head.strip(" ↑↓") for head in heads], texts, strict=True))


def is_shown(stored: str, shown: str, row: dict[str, str]) -> bool:
    """Whether rates are in percent or points with two digits, other numbers with four, or by a power."""
    if stored == "":
        return shown == "–"
    is_rate = TIERS[row["tier"]].metric(row["metric"].removeprefix("delta_")).unit == "fraction"
    value, digits = float(stored) * (100 if is_rate else 1), 2 if is_rate else 4
    if "e" in shown:
        return abs(value) < 10**-digits and float(shown) == pytest.approx(value, rel=0.05)
    is_near = abs(float(shown) - value) <= 0.5001 * 10**-digits
    return is_near and len(shown.partition(".")[2]) == digits and bool(float(shown)) == bool(value)


@pytest.mark.parametrize(
    ("name", "file", "sides"),
    [
        ("second/report.html", "second/bridge_deltas.csv", ("step", "value", "bridge_value")),
        ("comparison.html", "comparison.csv", ("step_a", "value_a", "value_b")),
    ],
)
def test_deltas(
    browser: Browser, written: Path, compared: Path, name: str, file: str, sides: tuple[str, ...]
) -> None:
    folder = compared if name.startswith("comparison") else written
    known = {
        (row[sides[0]], row["tier"], row["item"], row["metric"]): row
        for row in rows_of(folder / file)
        if row.get("run_b", "b") == "b"
    }
    count = 0
    with opened(browser, folder / name) as page:
        for shown in table_rows(page):
            row = known[shown["step"], shown["tier"], shown["item"], f"delta_{shown['metric']}"]
            own = {**row, "value": row[sides[1]], "bridge": row[sides[2]]}
            shown = {"bridge": shown.get("B", ""), **shown}
            for column in MEASURED:
                assert is_shown(own.get(column, ""), shown[column], row), (column, row)
                count += 1
            assert (shown["n"], shown["flag"]) == (row["n"], row["flag"])
    assert count > ENOUGH
