"""The picture in README is of a front page as it is now: its size, its lines and their digits."""

import re

from tests.conftest import ROOT
from tests.reporting.picture import text_of

PICTURE = ROOT / "docs" / "front_page.png"


def test_it_says_what_readme_quotes() -> None:
    shown = text_of(PICTURE)
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text().replace("\n>", " "))
    quoted = re.findall(r"\*\*(stage\d): [a-z ]+\.\*\* ([A-Z].*?(?:\)|more)\.)", readme)
    assert len(quoted) == 2
    for stage, sentence in quoted:
        heading = next(number for number, line in enumerate(shown) if line.split()[0] == stage)
        assert any(sentence in line for line in shown[heading:]), sentence
