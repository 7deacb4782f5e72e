"""Templates and embedded data of all pages.

Snakemake's report shows a page by a data: URL, with four characters for three bytes of the page, and
Chromium opens at most 2 MiB of it. So data are embedded compressed, and what does not fit is left out.
"""

import base64
import gzip
import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from evaluation.errors import printable_lines
from evaluation.files import write_text
from evaluation.reporting.headlines import loss_units, name_in_forest
from evaluation.reporting.palette import DARK, LIGHT
from evaluation.results.delta_rows import DeltaColumns
from evaluation.settings.tiers import TIERS

log = logging.getLogger(__name__)

LARGEST = 1_500_000
"""Bytes of a page that can be opened inside Snakemake's report."""

COLUMNS = "$columns"
"""The key under which a page's data store rows as columns."""


ENVIRONMENT = jinja2.Environment(
    finalize=lambda value: printable_lines(value) if type(value) is str else value,
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=jinja2.select_autoescape(("html",)),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
)
for _name, _colours in (("light", LIGHT), ("dark", DARK)):
    _css = " ".join(f"--{name}: {colour};" for name, colour in _colours.items())
    ENVIRONMENT.globals[_name] = _css

DEFAULTS = {"unit": next(iter(loss_units())), "metric": "", "find": ""}
"""The default of each choice that is part of every page's address."""

DELTAS_DEFAULTS = {"search": "", "sort": "step", "of": "", "tier": "", "flag": ""}
"""The same for a page that has a table of deltas."""


@dataclass(frozen=True)
class Table:
    """A table of words and numbers as text, under its title; `numbers` are the columns of numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""
    numbers: frozenset[str] = frozenset()


def cells_of(columns: Mapping[str, Callable[..., str]], *of: Any) -> tuple[str, ...]:
    """Return the cells of a row: each column's function gets all of the row's data."""
    return tuple(cell(*of) for cell in columns.values())


def render(template: str, data: Any, **values: Any) -> str:
    """Render a page from a file of `templates`, its data embedded."""
    return ENVIRONMENT.get_template(template).render(data=_embedded(data), **values)


def write_page(path: Path, text: str) -> None:
    """Write a page; warn where Snakemake's report cannot open it."""
    write_text(path, text)
    size = len(text.encode())
    if size > LARGEST:
        log.warning(
            "%s: %.1f MB; Chromium opens it, but not inside Snakemake's report.html: "
            "make that as report.zip",
            path,
            size / 1e6,
        )


def _packed(data: Any) -> Any:
    """Return the data with rows of the same keys stored as columns, which compress best.

    Floats get ten digits: tables round them again, and with seven the last digit was sometimes wrong.
    `charts.js` turns columns into rows again.
    """
    if isinstance(data, float):
        return float(f"{data:.10g}")
    if isinstance(data, Mapping):
        return {key: _packed(value) for key, value in data.items()}
    if not isinstance(data, list | tuple):
        return data
    rows = [_packed(one) for one in data]
    keys = rows[0].keys() if rows and isinstance(rows[0], dict) else ()
    if len(rows) < 2 or not keys or any(not isinstance(r, dict) or r.keys() != keys for r in rows):
        return rows
    return {COLUMNS: {key: [row[key] for row in rows] for key in keys}}


def _json(data: Any) -> bytes:
    text = json.dumps(_packed(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _embedded(data: Any) -> str:
    """Return compressed JSON in base64: a third of the size, and it cannot end its element."""
    return base64.b64encode(gzip.compress(_json(data), mtime=0)).decode()


class SpaceLeft:
    """Bytes that a page may still grow by, as base64; negative if it is too large already."""

    def __init__(self, left: float) -> None:
        self.left = left
        self._compressor = zlib.compressobj()

    def take(self, data: Any) -> bool:
        """Take the space that data need, compressed after all before them; False if there is too little."""
        trial = self._compressor.copy()
        needed = len(trial.compress(_json(data)) + trial.flush(zlib.Z_SYNC_FLUSH)) * 4 / 3
        if needed > self.left:
            return False
        self.left, self._compressor = self.left - needed, trial
        return True


SHOWN = "tier item higher_is_better delta low high p_holm mde n flag note".split()
"""Columns of a delta that a page shows besides both sides' values."""


def delta_row(row: DeltaColumns, **more: Any) -> dict[str, Any]:
    """Return a delta as pages draw it, with further entries, such as the values of both sides.

    `name` is that of its row in the forest plot named by `label`.
    """
    metric = row.metric.removeprefix("delta_")
    return {
        **{name: getattr(row, name) for name in SHOWN},
        "metric": metric,
        "name": name_in_forest(row),
        "label": "rates" if TIERS[row.tier].rates else metric,
        **more,
    }


def page_link(page: Path, start: Path) -> dict[str, str]:
    """Return relative addresses of another page: as a file, and `zipped`, in Snakemake's report.zip.

    In report.zip the folder of every file is named by 16 digits of the SHA-256 of its path.
    """
    digest = hashlib.sha256(str(page).encode()).hexdigest()[:16]
    file = os.path.relpath(page, start).replace(os.sep, "/")
    return {"file": quote(file), "zipped": f"../{digest}/{page.name}"}
