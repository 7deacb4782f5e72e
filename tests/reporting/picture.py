"""The picture in README: the top of the demo's front page, as a browser draws it.

    python -m tests.reporting.picture REPORT.html PICTURE.png

The picture holds the text of the decisions that it shows, so that a test can read what it says.
"""

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import Browser, Page

from tests.reporting.browser import launched, opened

WIDTH, HEIGHT = 1200, 1000
COLOURS = 64
TEXT = "Decisions"
"""Key of the text in the picture, a line for each paragraph or item of a list."""

LINES = """() => [...document.querySelectorAll(".decided :is(h2, p, li)")]
  .map((node) => node.innerText.replace(/\\s+/g, " ").trim())"""


def decisions_of(page: Page) -> list[str]:
    """The lines of the decisions that a front page begins with."""
    lines: list[str] = page.evaluate(LINES)
    return lines


def take_picture(browser: Browser, report: Path, picture: Path) -> None:
    """Draw a front page in few colours, and store the text of its decisions in the file."""
    with opened(browser, report, width=WIDTH) as page:
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        drawn = Image.open(io.BytesIO(page.screenshot()))
        lines = decisions_of(page)
    about = PngImagePlugin.PngInfo()
    about.add_itxt(TEXT, "\n".join(lines))
    drawn.convert("RGB").quantize(COLOURS).save(picture, optimize=True, pnginfo=about)


def text_of(picture: Path) -> list[str]:
    """The lines of the decisions that a picture shows."""
    with Image.open(picture) as image:
        image.load()
        return str(image.info[TEXT]).splitlines()


def main() -> None:
    """Take the picture of a front page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, launched(Path(folder)) as browser:
        take_picture(browser, given.report.resolve(), given.picture)


if __name__ == "__main__":
    main()
