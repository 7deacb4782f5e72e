"""The picture in README is of a front page as it is now: its size, its lines and their digits."""

import re
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from tests.conftest import ROOT
from tests.reporting.picture import HEIGHT, WIDTH, take_picture, text_of

PICTURE = ROOT / "docs" / "front_page.png"
KINDS = {
    "sentence": r"(Take|Nothing is decided|Do not go on).*\.",
    "path": r".* copy",
    "objective": r".* \(tier\d\), .*: .* \(.* is (wanted|allowed): (met|not met|undecided)\)",
    "risk": r"Risk: .*\.",
    "recipe": r"Recipe: .*\.",
    "bridge": r"Bridge: .*\.",
    "runner-up": r"Runner-up: .*\.",
    "intervals": r"95 % intervals .*\.",
    "open": r"What would decide: .*",
    "stage": r"\S+( the latest stage)?( ?;? ?beside .*)?",
}


def kinds(lines: Sequence[str]) -> list[str]:
    """What each line of the decisions is."""
    return [
        next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, line))
        for line in lines
    ]


def is_complete(lines: Sequence[str]) -> bool:
    """Whether each decision has all its lines, in one order."""
    order = " ".join(kinds(lines))
    decision = (
        r"stage sentence (path )?(objective )+risk (recipe )?(bridge )?(runner-up )?intervals ?"
        r"(open ?)*"
    )
    return re.fullmatch(f"({decision})+", order) is not None


def test_it_says_what_readme_quotes() -> None:
    shown = text_of(PICTURE)
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text().replace("\n>", " "))
    quoted = re.findall(r"\*\*(stage\d): [a-z ]+\.\*\* ([A-Z].*?(?:\)|more)\.)", readme)
    assert len(quoted) == 2
    for stage, sentence in quoted:
        heading = next(number for number, line in enumerate(shown) if line.split()[0] == stage)
        assert any(sentence in line for line in shown[heading:]), sentence


def test_it_is_of_a_page_as_they_are_now(browser: Browser, written: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.png"
    take_picture(browser, written / "report.html", fresh)
    for picture in (PICTURE, fresh):
        lines = text_of(picture)
        assert is_complete(lines), lines
        for value, unit in re.findall(
            r"[+-](\d+\.\d+) \[.*?\] (points|\w+ per \w+)", " ".join(lines)
        ):
            assert len(value.split(".")[1]) == (2 if unit == "points" else 4)
        with Image.open(picture) as image:
            assert image.size == (WIDTH, HEIGHT)
            assert len(image.getcolors(256) or ()) > 8  # nor is it blank
