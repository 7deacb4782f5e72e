"""The picture in README: the top of the demo's page of all stages, as a browser draws it.

python -m tests.reporting.picture REPORT.html PICTURE.png
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.reporting.browser import launched, opened

WIDTH, HEIGHT, COLOURS = 1200, 1000, 64


def main() -> None:
    """Take the picture of a page in few colours."""
    report, picture = map(Path, sys.argv[1:])
    with (
        tempfile.TemporaryDirectory() as folder,
        launched(Path(folder)) as browser,
        opened(browser, report.resolve(), width=WIDTH) as page,
    ):
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        drawn = Image.open(io.BytesIO(page.screenshot()))
    drawn.convert("RGB").quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main()
