"""The command `table`: checkpoints as columns, items as rows, as text, CSV or LaTeX.

Each checkpoint is compared with the column before, with Holm's correction over all items of the two.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tabulate import tabulate

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError, printable
from evaluation.reporting.tables.values import values_of
from evaluation.results.columns import csv_cell
from evaluation.results.read import Results, read_folder
from evaluation.settings.tiers import TIERS, TierName

Format = Literal["text", "csv", "latex"]
Key = tuple[TierName, str, str]
"""Tier, item, and the metric that represents it."""

LEGEND = (
    "▲ better, ▼ worse than the column before by the paired test (Holm's correction over all items of "
    "the two); a value without an interval has too few items for one"
)
ARROWS = {"better": "▲", "worse": "▼"}
_LATEX = {" ▲": r"$^{\blacktriangle}$", " ▼": r"$^{\blacktriangledown}$", "–": "--"}
"""In LaTeX, where arrows need the package amssymb."""


class Cell(NamedTuple):
    """A checkpoint's value of an item, and whether it differs from the column before."""

    value: float
    low: float | None = None
    high: float | None = None
    flag: str | None = None


Columns = Mapping[str, Mapping[Key, Cell]]
"""Values by label of the checkpoint."""


def checkpoint_columns(folders: Mapping[str, Path]) -> tuple[Columns, list[str]]:
    """Return a column for each folder of results, and a sentence for each pair that is not tested.

    Args:
        folders: Folders by the labels of their columns; flags are of the tests against the one before.
    """
    sides = {label: read_folder(folder) for label, folder in folders.items()}
    flags, notes = dict[str, dict[Key, str | None]](), list[str]()
    for before, label in pairwise(sides):
        ours, theirs = sides[label], sides[before]
        shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
        try:
            deltas = compare(replace(ours, tiers=shared), theirs) if shared else ()
        except BridgeError as error:
            notes.append(f"{label} is not tested against {before}: {error}")
            continue
        flags[label] = {(d.tier, d.item, d.metric.removeprefix("delta_")): d.flag for d in deltas}
    return {label: _cells(side, flags.get(label, {})) for label, side in sides.items()}, notes


def _cells(side: Results, flags: Mapping[Key, str | None]) -> dict[Key, Cell]:
    """Return a value for each item: overall values first, then means of groups, then the others."""
    metrics: dict[tuple[TierName, str], set[str]] = {}
    values = values_of(side)
    for value in values:
        metrics.setdefault((value.tier, value.item), set()).add(value.metric)
    values.sort(key=lambda v: (v.item != OVERALL, not is_mean(v.tier, v.item)))
    return {
        (v.tier, v.item, v.metric): Cell(
            v.value, v.low, v.high, flags.get((v.tier, v.item, v.metric))
        )
        for v in values
        if v.metric == TIERS[v.tier].shown_of(metrics[v.tier, v.item])
    }


def columns_in(form: Format, columns: Columns) -> str:
    """Return columns as a table in one format; CSV has unrounded numbers in the units of files."""
    keys = list(dict.fromkeys(key for cells in columns.values() for key in cells))
    keys.sort(key=lambda key: ([*TIERS].index(key[0]), key[2] != TIERS[key[0]].shown))
    if form == "csv":
        out = io.StringIO()
        heads = [f"{label} {name}" for label in columns for name in Cell._fields]
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([csv_cell(cell) for cell in ("tier", "item", "metric", *heads)])
        for key in keys:
            writer.writerow([csv_cell(cell) for cell in (*key, *_plain(columns, key))])
        return out.getvalue()
    rows = [
        [_title(key), key[1], *(_cell(cells, key) for cells in columns.values())] for key in keys
    ]
    head, *rest = [[printable(cell) for cell in row] for row in (["", "item", *columns], *rows)]
    style = {"text": "simple", "latex": "latex_booktabs"}[form]
    text = str(tabulate(rest, headers=head, tablefmt=style, disable_numparse=True))
    for char, command in _LATEX.items() if form == "latex" else ():
        text = text.replace(char, command)
    return text + "\n"


def columns_as_json(
    columns: Columns, folders: Mapping[str, Path], notes: Sequence[str]
) -> dict[str, Any]:
    """Return columns as `table --json` prints them, with sentences on pairs that are not tested."""
    names = ("tier", "item", "metric", *Cell._fields)
    shown = [
        {
            "label": label,
            "folder": str(folders[label]),
            "values": [dict(zip(names, (*key, *cell), strict=True)) for key, cell in cells.items()],
        }
        for label, cells in columns.items()
    ]
    return {"columns": shown, "notes": [*notes]}


def _plain(columns: Columns, key: Key) -> list[object]:
    empty = [None] * len(Cell._fields)
    return [number for cells in columns.values() for number in cells.get(key, empty)]


def _title(key: Key) -> str:
    unit = TIERS[key[0]].metric(key[2]).unit
    return f"{TIERS[key[0]].title} ({'%' if unit == 'fraction' else unit})"


def _cell(cells: Mapping[Key, Cell], key: Key) -> str:
    cell, metric = cells.get(key), TIERS[key[0]].metric(key[2])
    if cell is None:
        return "–"
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    words = [f"{scale * cell.value:.{digits}f}"]
    if cell.low is not None and cell.high is not None:
        words.append(f"[{scale * cell.low:.{digits}f}, {scale * cell.high:.{digits}f}]")
    return " ".join([*words, *filter(None, [ARROWS.get(cell.flag or "")])])
