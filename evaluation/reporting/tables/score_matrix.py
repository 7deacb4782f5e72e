"""Checkpoints as columns, items as rows: a stage's score matrix, or chosen checkpoints side by side.

`score_matrix.csv` and `score_matrix.tex` compare every step with the bridge; values and arrows are
those of `summary.*` and `bridge_deltas.*`. The command `table` compares each checkpoint with the
column before, as text, CSV or LaTeX, by Holm's correction over all items of the two.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Literal

from evaluation.bridge.delta import OVERALL, Delta, is_mean
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError
from evaluation.escaping import csv_cell, latex
from evaluation.files import write_text
from evaluation.reporting.headlines import shown_metrics
from evaluation.reporting.palette import LIGHT
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.reporting.tables.values import Value, values_of
from evaluation.results.command_output import CheckpointTable, TableColumn, TableValue
from evaluation.results.deltas_file import DeltaRow
from evaluation.results.read import Results, read_folder
from evaluation.results.stage_files import MATRIX, MATRIX_TEX, RetentionRow
from evaluation.settings.candidates import candidate_label, candidate_rank
from evaluation.settings.tiers import TIERS, Metric, TierName
from evaluation.terminal_layout import align

Format = Literal["text", "csv", "latex"]
Key = tuple[TierName, str, str]
"""Tier, item, and the metric that stands for it."""

LEGEND = (
    "▲ better, ▼ worse than the column before by the paired test (Holm's correction over all items of "
    "the two); a value without an interval has too few items for one"
)
NOTE = (
    "Colour: difference from the bridge, blue for the better. Arrows: significant by the paired test "
    "(Holm's correction over the step's items; an overall value by its own test)."
)

_ARROWS = {"better": "▲", "worse": "▼"}
_LATEX = {"▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$", "–": "--"}

DARKEST = 0.45
"""The share of its colour that the darkest cell has."""


@dataclass(frozen=True)
class Column:
    """A checkpoint's headline values, and what differs from the column that it is compared with.

    `deltas` are there where cells are to be coloured by them.
    """

    label: str
    values: Mapping[Key, Value]
    flags: Mapping[Key, str]
    deltas: Mapping[Key, float] = field(default_factory=dict)


def write_matrix(found: StageResults) -> None:
    """Write both files of a stage's score matrix: the bridge, then every step and every merge."""
    columns = [] if found.bridge is None else [_scored_column("bridge", found.bridge, ())]
    for candidate in sorted(found.candidates, key=candidate_rank):
        content, scored = found.deltas.get(candidate), found.candidates[candidate]
        label = candidate_label(candidate)
        columns.append(_scored_column(label, scored, content.deltas if content else ()))
    write_text(found.plan.results / MATRIX, as_csv(columns))
    write_text(found.plan.results / MATRIX_TEX, heat_map(columns, NOTE))


def _scored_column(label: str, scored: Scored, rows: Sequence[DeltaRow]) -> Column:
    values = _shown_values(scored.values)
    own = {key: row for row in rows if (key := key_of(row)) in values}
    return Column(
        label=label,
        values=values,
        flags={key: row.flag for key, row in own.items() if row.flag is not None},
        deltas={key: row.delta for key, row in own.items()},
    )


def _shown_values(values: Iterable[Value]) -> dict[Key, Value]:
    """Return a value for each item, each tier's means first."""
    values = list(values)
    shown = shown_metrics((v.tier, v.item, v.metric) for v in values)
    own = [v for v in values if v.metric == shown[v.tier, v.item]]
    return {key_of(value): value for value in sorted(own, key=_rank)}


def key_of(row: Value | Delta | DeltaRow | RetentionRow) -> Key:
    """Return the key of a value or a delta."""
    return row.tier, row.item, row.metric.removeprefix("delta_")


def _rank(value: Value) -> tuple[bool, bool]:
    """Order overall values before groups, and these before what they are means of."""
    return value.item != OVERALL, not is_mean(value.tier, value.item)


def checkpoint_columns(folders: Mapping[str, Path]) -> tuple[list[Column], list[str]]:
    """Return a column for each labelled folder, and a sentence for each pair that is not tested.

    Raises:
        ResultsError: a folder has no results, or damaged ones.
    """
    sides = {label: read_folder(folder) for label, folder in folders.items()}
    flags: dict[str, dict[Key, str]] = {}
    notes = []
    for before, label in pairwise(sides):
        try:
            flags[label] = _flags(sides[label], sides[before])
        except BridgeError as error:
            notes.append(f"{label} is not tested against {before}: {error}")
    columns = [
        Column(label, _shown_values(values_of(side)), flags.get(label, {}))
        for label, side in sides.items()
    ]
    return columns, notes


def columns_in(form: Format, columns: Sequence[Column], *, is_whole: bool = True) -> str:
    """Return columns as a table in this format; text that is not whole fits the terminal."""
    if form == "text":
        return as_text(columns, is_whole=is_whole)
    return {"csv": as_csv, "latex": as_latex}[form](columns)


def columns_as_json(
    columns: Sequence[Column], folders: Mapping[str, Path], notes: Sequence[str]
) -> CheckpointTable:
    """Return columns as `table --json` prints them."""
    found = []
    for column in columns:
        values = tuple(
            TableValue.model_validate(
                {**dict(zip(("tier", "item", "metric"), key, strict=True)), **_numbers(column, key)}
            )
            for key in column.values
        )
        folder = str(folders[column.label])
        found.append(TableColumn(label=column.label, folder=folder, values=values))
    return CheckpointTable(columns=tuple(found), notes=tuple(notes))


def _flags(ours: Results, theirs: Results) -> dict[Key, str]:
    """Compare the tiers that both have."""
    shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
    if not shared:
        return {}
    return {
        key_of(delta): delta.flag
        for delta in compare(replace(ours, tiers=shared), theirs)
        if delta.flag is not None
    }


def as_text(columns: Sequence[Column], *, is_whole: bool) -> str:
    """Return an aligned table, with the interval of each value."""
    rows = [["", "item", *(column.label for column in columns)]]
    for key in _keys(columns):
        rows.append([_title(key), key[1], *(_cell(column, key) for column in columns)])
    return align(rows, keys=2, is_whole=is_whole) + "\n"


def as_csv(columns: Sequence[Column]) -> str:
    """Return numbers in full, in the units of the result files."""
    names = ["value", "low", "high", "flag"]
    if any(column.deltas for column in columns):
        names.insert(3, "delta")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column.label} {name}" for column in columns for name in names]
    writer.writerow(map(csv_cell, ["tier", "item", "metric", *heads]))
    for key in _keys(columns):
        cells = [_numbers(column, key).get(name) for column in columns for name in names]
        writer.writerow(map(csv_cell, [*key, *cells]))
    return out.getvalue()


def as_latex(columns: Sequence[Column]) -> str:
    """Return a `tabular` in the style of booktabs; the arrows need amssymb."""
    return _tabular(columns, lambda column, key: _escaped(_cell(column, key)))


def heat_map(columns: Sequence[Column], note: str) -> str:
    """Return a `tabular` whose cells are coloured by their deltas, without intervals.

    The darkest cell of a part is the one that changed most. `note` says what is compared with what.
    """
    most: dict[tuple[TierName, str], float] = {}
    for column in columns:
        for key, delta in column.deltas.items():
            most[key[::2]] = max(most.get(key[::2], 0.0), abs(delta))
    lines = (
        "% \\usepackage{booktabs, amssymb} \\usepackage[table]{xcolor}",
        f"% {note}",
        _tabular(columns, lambda column, key: _tinted(column, key, most.get(key[::2], 0.0))),
    )
    return "\n".join(lines)


def _keys(columns: Sequence[Column]) -> list[Key]:
    found = dict.fromkeys(key for column in columns for key in column.values)
    order = list(TIERS)

    return sorted(found, key=lambda key: (order.index(key[0]), key[2] != TIERS[key[0]].shown))


def _metric(key: Key) -> Metric:
    return TIERS[key[0]].metric(key[2])


def _title(key: Key) -> str:
    unit = _metric(key).unit
    return f"{TIERS[key[0]].title} ({'%' if unit == 'fraction' else unit})"


def _cell(column: Column, key: Key, *, has_interval: bool = True) -> str:
    value = column.values.get(key)
    if value is None:
        return "–"
    metric = TIERS[value.tier].metric(value.metric)
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    words = [f"{scale * value.value:.{digits}f}"]
    if has_interval and value.low is not None and value.high is not None:
        words.append(f"[{scale * value.low:.{digits}f}, {scale * value.high:.{digits}f}]")
    words.append(_ARROWS.get(column.flags.get(key, ""), ""))
    return " ".join(filter(None, words))


def _numbers(column: Column, key: Key) -> Mapping[str, object]:
    value = column.values.get(key)
    if value is None:
        return {}
    return {
        "value": value.value,
        "low": value.low,
        "high": value.high,
        "delta": column.deltas.get(key),
        "flag": column.flags.get(key),
    }


def _tinted(column: Column, key: Key, most: float) -> str:
    text, delta = _escaped(_cell(column, key, has_interval=False)), column.deltas.get(key)
    if not delta or not most:
        return text
    is_gain = (delta > 0) == _metric(key).higher_is_better
    share = DARKEST * abs(delta) / most
    colour = bytes.fromhex(LIGHT["better" if is_gain else "worse"].removeprefix("#"))
    mixed = "".join(f"{round(255 - share * (255 - part)):02X}" for part in colour)
    return rf"\cellcolor[HTML]{{{mixed}}}{text}"


def _tabular(columns: Sequence[Column], cell: Callable[[Column, Key], str]) -> str:
    """Return rows of escaped cells, a heading above those of each tier and metric."""
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    lines.append(" & ".join(["", *(_escaped(column.label) for column in columns)]) + r" \\")
    for title, keys in groupby(_keys(columns), key=_title):
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{1 + len(columns)}}}{{l}}{{{_escaped(title)}}} \\")
        for key in keys:
            cells = [_escaped(key[1]), *(cell(column, key) for column in columns)]
            lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    text = latex(text)
    for char, command in _LATEX.items():
        text = text.replace(f" {char}", command) if char in "▲▼" else text.replace(char, command)
    return text
