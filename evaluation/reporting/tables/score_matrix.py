"""Checkpoints as columns, items as rows: a stage's score matrix, or chosen checkpoints side by side.

`score_matrix.csv` and `score_matrix.tex` compare every step with the bridge; values and arrows are
those of `summary.*` and `bridge_deltas.*`. The command `table` compares each checkpoint with the
column before, as text, CSV or LaTeX, with Holm's correction over all items of the two.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError
from evaluation.escaping import csv_cell, latex
from evaluation.files import write_text
from evaluation.reporting.headlines import shown_metrics
from evaluation.reporting.palette import LIGHT
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.reporting.tables.values import Value, values_of
from evaluation.reporting.terminal import as_table
from evaluation.results.command_output import CheckpointTable, TableColumn, TableValue
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.read import read_folder
from evaluation.results.stage_files import MATRIX, MATRIX_TEX, RetentionRow
from evaluation.settings.candidates import candidate_rank
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, TierName

Format = Literal["text", "csv", "latex"]
Key = tuple[TierName, str, str]
"""Tier, item, and the metric that represents it."""

LEGEND = (
    "▲ better, ▼ worse than the column before by the paired test (Holm's correction over all items of "
    "the two); a value without an interval has too few items for one"
)
NOTE = (
    "Colour: difference from the bridge, blue for the better. Arrows: significant by the paired test "
    "(Holm's correction over the step's items; an overall value by its own test)."
)

ARROWS = {"better": "▲", "worse": "▼"}
_LATEX = {"▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$", "–": "--"}

DARKEST = 0.45
"""Share of the full colour that the darkest cell has."""


class Cell(NamedTuple):
    """A checkpoint's value of an item, and how it differs from the column that it is compared with.

    `delta` is given where it colours the cell.
    """

    value: float
    low: float | None = None
    high: float | None = None
    flag: str | None = None
    delta: float | None = None


Columns = Mapping[str, Mapping[Key, Cell]]
"""Headline values by label of the checkpoint."""


def write_matrix(stage: StageResults) -> None:
    """Write both files of a stage's score matrix: the bridge, then every step and every merge."""
    columns = {} if stage.bridge is None else {"bridge": _cells(stage.bridge.values, {})}
    for candidate in sorted(stage.candidates, key=candidate_rank):
        content = stage.deltas.get(candidate)
        known = {key_of(row): (row.flag, row.delta) for row in (content.deltas if content else ())}
        columns[stage.plan.label(candidate)] = _cells(stage.candidates[candidate].values, known)
    write_text(stage.plan.results / MATRIX, _as_csv(columns))
    write_text(stage.plan.results / MATRIX_TEX, heat_map(columns, NOTE))


def _cells(
    values: Sequence[Value], known: Mapping[Key, tuple[str | None, float | None]]
) -> dict[Key, Cell]:
    """Return a value for each item: overall values first, then means of groups, then the others.

    Flags and deltas are added where there are any.
    """
    shown = shown_metrics((v.tier, v.item, v.metric) for v in values)
    own = [v for v in values if v.metric == shown[v.tier, v.item]]
    own.sort(key=lambda v: (v.item != OVERALL, not is_mean(v.tier, v.item)))
    return {key_of(v): Cell(v.value, v.low, v.high, *known.get(key_of(v), ())) for v in own}


def key_of(row: Value | Delta | DeltaRow | RetentionRow) -> Key:
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
    flags: dict[str, dict[Key, tuple[str | None, None]]] = {}
    notes = []
    for before, label in pairwise(sides):
        ours, theirs = sides[label], sides[before]
        shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
        try:
            deltas = compare(replace(ours, tiers=shared), theirs) if shared else ()
            flags[label] = {key_of(delta): (delta.flag, None) for delta in deltas}
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
    return _tabular(columns, lambda cells, key: _escaped(_cell(cells, key)))


def columns_as_json(
    columns: Columns, folders: Mapping[str, Path], notes: Sequence[str]
) -> CheckpointTable:
    """Return columns as `table --json` prints them, with sentences on pairs that are not tested."""
    names = ("tier", "item", "metric", "value", "low", "high", "flag")
    found = tuple(
        TableColumn(
            label=label,
            folder=str(folders[label]),
            values=tuple(
                TableValue.model_validate(dict(zip(names, (*key, *cell), strict=False)))
                for key, cell in cells.items()
            ),
        )
        for label, cells in columns.items()
    )
    return CheckpointTable(columns=found, notes=tuple(notes))


def _as_csv(columns: Columns) -> str:
    """Return a table of unrounded numbers, in the units of the result files."""
    names = ["value", "low", "high", "flag"]
    if any(cell.delta is not None for cells in columns.values() for cell in cells.values()):
        names.insert(3, "delta")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{label} {name}" for label in columns for name in names]
    writer.writerow(map(csv_cell, ["tier", "item", "metric", *heads]))
    for key in _keys(columns):
        own = [cells.get(key) for cells in columns.values()]
        cells = [getattr(cell, name, None) for cell in own for name in names]
        writer.writerow(map(csv_cell, [*key, *cells]))
    return out.getvalue()


def heat_map(columns: Columns, note: str) -> str:
    """Return a `tabular` whose cells are coloured by their deltas, without intervals.

    The darkest cell of a tier's metric is the one that changed most.

    Args:
        note: A sentence on what is compared with what, for a LaTeX comment.
    """
    most: dict[tuple[TierName, str], float] = {}
    for cells in columns.values():
        for key, cell in cells.items():
            most[key[::2]] = max(most.get(key[::2], 0.0), abs(cell.delta or 0.0))
    lines = (
        "% \\usepackage{booktabs, amssymb} \\usepackage[table]{xcolor}",
        f"% {note}",
        _tabular(columns, lambda cells, key: _tinted(cells, key, most.get(key[::2], 0.0))),
    )
    return "\n".join(lines)


def _keys(columns: Columns) -> list[Key]:
    found = dict.fromkeys(key for cells in columns.values() for key in cells)
    order = list(TIERS)
    return sorted(found, key=lambda key: (order.index(key[0]), key[2] != TIERS[key[0]].shown))


def _metric(key: Key) -> Metric:
    return TIERS[key[0]].metric(key[2])


def _title(key: Key) -> str:
    unit = _metric(key).unit
    return f"{TIERS[key[0]].title} ({'%' if unit == 'fraction' else unit})"


def _cell(cells: Mapping[Key, Cell], key: Key, *, has_interval: bool = True) -> str:
    cell, metric = cells.get(key), _metric(key)
    if cell is None:
        return "–"
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    words = [f"{scale * cell.value:.{digits}f}"]
    if has_interval and cell.low is not None and cell.high is not None:
        words.append(f"[{scale * cell.low:.{digits}f}, {scale * cell.high:.{digits}f}]")
    words.append(ARROWS.get(cell.flag or "", ""))
    return " ".join(filter(None, words))


def _tinted(cells: Mapping[Key, Cell], key: Key, most: float) -> str:
    text, cell = _escaped(_cell(cells, key, has_interval=False)), cells.get(key)
    delta = cell.delta if cell else None
    if not delta or not most:
        return text
    is_gain = (delta > 0) == _metric(key).higher_is_better
    share = DARKEST * abs(delta) / most
    colour = bytes.fromhex(LIGHT["better" if is_gain else "worse"].removeprefix("#"))
    mixed = "".join(f"{round(255 - share * (255 - part)):02X}" for part in colour)
    return rf"\cellcolor[HTML]{{{mixed}}}{text}"


def _tabular(columns: Columns, cell: Callable[[Mapping[Key, Cell], Key], str]) -> str:
    """Return rows of escaped cells, a heading above those of each tier and metric."""
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    lines.append(" & ".join(["", *map(_escaped, columns)]) + r" \\")
    for title, keys in groupby(_keys(columns), key=_title):
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{1 + len(columns)}}}{{l}}{{{_escaped(title)}}} \\")
        for key in keys:
            cells = [_escaped(key[1]), *(cell(column, key) for column in columns.values())]
            lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    text = latex(text)
    for char, command in _LATEX.items():
        text = text.replace(f" {char}", command) if char in "▲▼" else text.replace(char, command)
    return text
