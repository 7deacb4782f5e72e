"""Every number of the pages' tables is that of the files beside them, by its own rule of digits."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from evaluation.settings.tiers import TIERS, TierName
from tests.reporting.browser import opened

MEASURED = ("value", "bridge", "delta", "low", "high", "mde")
ENOUGH = 60


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def in_digits(text: str, tier: str, metric: str) -> str:
    """A number as a page writes it: rates in percent or points with two digits, others with four."""
    if text == "":
        return "–"
    is_rate = TIERS[of(tier)].metric(metric.removeprefix("delta_")).unit == "fraction"
    value = float(text) * (100 if is_rate else 1)
    shown = f"{value:.{2 if is_rate else 4}f}"
    if value and not float(shown):
        digits, power = f"{value:.1e}".split("e")
        return f"{digits}e{int(power):+d}"
    return shown


def is_tie(text: str, stored: str, expected: str) -> bool:
    """Whether a number lies between two texts of it: browsers round a tie up, Python to the even digit."""
    scale = round(float(expected) / float(stored), -1) or 1.0
    middle = (float(text) + float(expected)) / 2
    return len(text) == len(expected) and middle == pytest.approx(float(stored) * scale, abs=1e-9)


def of(tier: str) -> TierName:
    return next(name for name in TIERS if name == tier)


def cells(row: Locator) -> list[str]:
    return [text.strip(" ▲▼\n") for text in row.locator("td").all_text_contents()]


def table_rows(page: Page) -> Iterator[dict[str, str]]:
    """Rows of the table of deltas, by the heads of its columns."""
    if page.locator("#more").is_visible():
        page.locator("#more").click()
    heads = page.locator("#deltas thead th").all_inner_texts()
    for line in page.locator("#deltas tbody tr").all():
        yield dict(zip([head.strip(" ↑↓") for head in heads], cells(line), strict=True))


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
            own = {"value": row[sides[1]], "bridge": row[sides[2]]}
            shown = {"bridge": shown.get("B", ""), **shown}
            for column in MEASURED:
                expected = in_digits(
                    own.get(column, row.get(column, "")), row["tier"], row["metric"]
                )
                assert shown[column] == expected or is_tie(
                    shown[column], own.get(column, row.get(column, "")), expected
                ), (column, row)
                count += 1
            assert (shown["n"], shown["flag"]) == (row["n"], row["flag"])
    assert count > ENOUGH
