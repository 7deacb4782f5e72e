"""The command `table`: checkpoints as columns, items as rows, as text, CSV or LaTeX.

Each checkpoint is compared with the column before, with Holm's correction over all items of the two.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError
from evaluation.reporting.tables.values import Value, values_of
from evaluation.reporting.terminal import as_table
from evaluation.results.escaping import csv_cell, latex
from evaluation.results.read import read_folder
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, TierName

Format = Literal["text", "csv", "latex"]
Key = tuple[TierName, str, str]
"""Tier, item, and the metric that represents it."""

LEGEND = (
    "▲ better, ▼ worse than the column before by the paired test (Holm's correction over all items of "
    "the two); a value without an interval has too few items for one"
)
ARROWS = {"better": "▲", "worse": "▼"}
_LATEX = {"▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$", "–": "--"}


class Cell(NamedTuple):
    """A checkpoint's value of an item, and whether it differs from the column before."""

    value: float
    low: float | None = None
    high: float | None = None
    flag: str | None = None


Columns = Mapping[str, Mapping[Key, Cell]]
"""Headline values by label of the checkpoint."""


def _cells(values: Sequence[Value], flags: Mapping[Key, str | None]) -> dict[Key, Cell]:
    """Return a value for each item: overall values first, then means of groups, then the others."""
    metrics: dict[tuple[TierName, str], set[str]] = {}
    for value in values:
        metrics.setdefault((value.tier, value.item), set()).add(value.metric)
    shown = {key: TIERS[key[0]].shown_of(names) for key, names in metrics.items()}
    own = [v for v in values if v.metric == shown[v.tier, v.item]]
    own.sort(key=lambda v: (v.item != OVERALL, not is_mean(v.tier, v.item)))
    return {_key(v): Cell(v.value, v.low, v.high, flags.get(_key(v))) for v in own}


def _key(row: Value | Delta) -> Key:
    """Return tier, item and metric of a value, or of a delta of one."""
    return row.tier, row.item, row.metric.removeprefix("delta_")


def checkpoint_columns(folders: Mapping[str, Path]) -> tuple[Columns, list[str]]:
    """Return a column for each folder; flags are of the tests against the folder before.

    Args:
        folders: Folders of results by the labels of their columns, in order.

    Returns:
        The columns, and a sentence for each pair of neighbours that is not tested.

    Raises:
        ResultsError: A folder has no results, or damaged ones.
    """
    sides = {label: read_folder(folder) for label, folder in folders.items()}
    flags: dict[str, dict[Key, str | None]] = {}
    notes = []
    for before, label in pairwise(sides):
        ours, theirs = sides[label], sides[before]
        shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
        try:
            deltas = compare(replace(ours, tiers=shared), theirs) if shared else ()
            flags[label] = {_key(delta): delta.flag for delta in deltas}
        except BridgeError as error:
            notes.append(f"{label} is not tested against {before}: {error}")
    columns = {
        label: _cells(values_of(side), flags.get(label, {})) for label, side in sides.items()
    }
    return columns, notes


def columns_in(form: Format, columns: Columns) -> str:
    """Return columns as a table in one format.

    LaTeX is a `tabular` in the style of booktabs; its arrows need amssymb.
    """
    if form == "text":
        rows = [["", "item", *columns]]
        for key in _keys(columns):
            rows.append([_title(key), key[1], *(_cell(cells, key) for cells in columns.values())])
        return as_table(rows) + "\n"
    if form == "csv":
        return _as_csv(columns)
    return _tabular(columns)


def columns_as_json(
    columns: Columns, folders: Mapping[str, Path], notes: Sequence[str]
) -> dict[str, Any]:
    """Return columns as `table --json` prints them, with sentences on pairs that are not tested."""
    names = ("tier", "item", "metric", "value", "low", "high", "flag")
    found = [
        {
            "label": label,
            "folder": str(folders[label]),
            "values": [
                dict(zip(names, (*key, *cell), strict=False)) for key, cell in cells.items()
            ],
        }
        for label, cells in columns.items()
    ]
    return {"columns": found, "notes": [*notes]}


def _as_csv(columns: Columns) -> str:
    """Return a table of unrounded numbers, in the units of the result files."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{label} {name}" for label in columns for name in Cell._fields]
    writer.writerow(map(csv_cell, ["tier", "item", "metric", *heads]))
    for key in _keys(columns):
        own = [cells.get(key) for cells in columns.values()]
        cells = [getattr(cell, name, None) for cell in own for name in Cell._fields]
        writer.writerow(map(csv_cell, [*key, *cells]))
    return out.getvalue()


def _keys(columns: Columns) -> list[Key]:
    found = dict.fromkeys(key for cells in columns.values() for key in cells)
    order = list(TIERS)
    return sorted(found, key=lambda key: (order.index(key[0]), key[2] != TIERS[key[0]].shown))


def _metric(key: Key) -> Metric:
    return TIERS[key[0]].metric(key[2])


def _title(key: Key) -> str:
    unit = _metric(key).unit
    return f"{TIERS[key[0]].title} ({'%' if unit == 'fraction' else unit})"


def _cell(cells: Mapping[Key, Cell], key: Key) -> str:
    cell, metric = cells.get(key), _metric(key)
    if cell is None:
        return "–"
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    words = [f"{scale * cell.value:.{digits}f}"]
    if cell.low is not None and cell.high is not None:
        words.append(f"[{scale * cell.low:.{digits}f}, {scale * cell.high:.{digits}f}]")
    words.append(ARROWS.get(cell.flag or "", ""))
    return " ".join(filter(None, words))


def _tabular(columns: Columns) -> str:
    """Return rows of escaped cells, a heading above those of each tier and metric."""
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    lines.append(" & ".join(["", *map(_escaped, columns)]) + r" \\")
    for title, keys in groupby(_keys(columns), key=_title):
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{1 + len(columns)}}}{{l}}{{{_escaped(title)}}} \\")
        for key in keys:
            cells = [
                _escaped(key[1]),
                *(_escaped(_cell(column, key)) for column in columns.values()),
            ]
            lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    text = latex(text)
    for char, command in _LATEX.items():
        text = text.replace(f" {char}", command) if char in "▲▼" else text.replace(char, command)
    return text
