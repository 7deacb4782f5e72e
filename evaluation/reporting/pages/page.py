"""What both kinds of page are made with: templates, and data embedded without waste.

Snakemake's report shows a page by a data: URL, of which Chromium opens 2 MiB at most, four characters
for three bytes of the page. So data are embedded compressed, and what finds no room is left out.
"""

import base64
import gzip
import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from evaluation.bridge.delta import OVERALL
from evaluation.escaping import printable_lines
from evaluation.files import write_text
from evaluation.reporting.pages.curves import Series, is_logarithmic
from evaluation.reporting.palette import DARK, LIGHT, as_css
from evaluation.results.comparison_file import ComparisonRow
from evaluation.results.deltas_file import DeltaRow
from evaluation.results.stage_files import RetentionRow
from evaluation.settings.tiers import TIERS

log = logging.getLogger(__name__)

LARGEST = 1_500_000
"""Bytes of a page that can be opened inside Snakemake's report."""


def _finalized(value: Any) -> Any:
    return printable_lines(value) if type(value) is str else value


ENVIRONMENT = jinja2.Environment(
    finalize=_finalized,
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=jinja2.select_autoescape(("html",)),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
)
ENVIRONMENT.globals |= {"light": as_css(LIGHT), "dark": as_css(DARK)}

DEFAULTS = {"unit": "nats_per_token", "metric": "", "find": ""}
"""What every page shows of each choice that stands in its address, until a reader chooses."""

DELTAS_DEFAULTS = {"search": "", "sort": "step"}
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
    """Return the cells of a row, by the function of each column."""
    return tuple(cell(*of) for cell in columns.values())


Links = dict[str, dict[str, str]]
"""By what a page calls another: how it refers to it, see `page_link`."""

SHOWN = 6
"""Missing files that are named where there is little room."""


def render(template: str, data: Any, **values: Any) -> str:
    """Render a page from a template, its data embedded."""
    return ENVIRONMENT.get_template(template).render(data=embedded(data), **values)


def write_page(path: Path, text: str) -> None:
    write_text(path, text)
    size = len(text.encode())
    if size > LARGEST:
        log.warning(
            "%s: %.1f MB; Chromium opens it, but not inside Snakemake's report.html: "
            "make that as report.zip",
            path,
            size / 1e6,
        )


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def embedded(data: Any) -> str:
    """Return compressed JSON in base64: a third of the size, and it cannot end its element."""
    return base64.b64encode(gzip.compress(_json(data), mtime=0)).decode()


@dataclass
class SpaceLeft:
    """Bytes that a page may still grow by."""

    left: float

    def take(self, data: Any) -> bool:
        """Take the room that data will need at most; return False if there is not as much."""
        needed = len(zlib.compress(_json(data))) * 4 / 3
        if needed > self.left:
            return False
        self.left -= needed
        return True


def seven_digits(value: Any) -> Any:
    """Round a float to seven digits, more than any plot or table shows."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


POINT = ("x", "step", "value", "low", "high", "paired_low", "paired_high", "stage", "tokens")


def packed_series(series: Iterable[Series]) -> list[dict[str, Any]]:
    """Return series whose points are columns (of POINT), as there may be hundreds of steps."""
    return [_packed(one) for one in series]


def _packed(series: Series) -> dict[str, Any]:
    lines = [{**line, "points": _columns(line["points"])} for line in series.get("lines", ())]
    log_scale = is_logarithmic(series)
    packed = {**series, "points": _columns(series["points"]), "log": log_scale}
    return {**packed, "lines": lines} if lines else packed


def _columns(points: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {
        name: [seven_digits(point[name]) for point in points]
        for name in POINT
        if points and name in points[0] and (name != "x" or "stage" in points[0])
    }


KEY = ("tier", "item", "metric", "want", "headline", "name", "label")
VALUES = ("value", "bridge", "delta", "low", "high", "p_holm", "mde", "n", "flag", "note")


def packed_deltas(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as arrays [step, index into `keys`, *VALUES]; what steps share is there once."""
    keys: dict[tuple[Any, ...], int] = {}
    notes: dict[str | None, int] = {}
    packed: list[list[Any]] = []
    for row in rows:
        key = keys.setdefault(tuple(row[name] for name in KEY), len(keys))
        note = notes.setdefault(row["note"], len(notes))
        packed.append([row["step"], key, *(seven_digits(row[name]) for name in VALUES[:-1]), note])
    return {"keys": list(keys), "notes": list(notes), "rows": packed, "of": [KEY, VALUES]}


def delta_row(row: DeltaRow | ComparisonRow, **more: Any) -> dict[str, Any]:
    """Return a row of `packed_deltas`: a page draws it by `name` in the forest plot of its `label`."""
    metric, has_rates = row.metric.removeprefix("delta_"), TIERS[row.tier].rates
    return {
        **row.model_dump(),
        "metric": metric,
        "name": metric if has_rates and row.item == OVERALL else row.item,
        "label": "rates" if has_rates else metric,
        **more,
    }


KEPT = ("tier", "item", "metric")
KEPT_VALUES = ("earlier_value", "value", "delta", "low", "high", "p_holm", "n", "flag")


def packed_retention(rows: Iterable[RetentionRow]) -> dict[str, Any]:
    """Return arrays [earlier, later, index into `keys`, *KEPT_VALUES]; `labels` name checkpoints."""
    labels: dict[str, int] = {}
    keys: dict[tuple[Any, ...], int] = {}
    packed: list[list[Any]] = []
    for row in rows:
        pair = [labels.setdefault(label, len(labels)) for label in (row.earlier, row.later)]
        key = keys.setdefault(tuple(getattr(row, name) for name in KEPT), len(keys))
        packed.append([*pair, key, *(seven_digits(getattr(row, name)) for name in KEPT_VALUES)])
    return {"labels": list(labels), "keys": list(keys), "rows": packed, "of": KEPT_VALUES}


def page_link(page: Path, start: Path) -> dict[str, str]:
    """Return how the page in `start` refers to another: as a file, and in Snakemake's report.zip.

    There every file lies in a folder that is named by 16 digits of the SHA-256 of its path.
    """
    digest = hashlib.sha256(str(page).encode()).hexdigest()[:16]
    file = os.path.relpath(page, start).replace(os.sep, "/")
    return {"file": quote(file), "zipped": f"../{digest}/{page.name}"}


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """Return the first few of many names, in words."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])
