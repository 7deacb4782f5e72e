"""Checkpoints as columns, items as rows: how such a table is written as text, CSV or LaTeX."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaluation.escaping import csv_cell, latex
from evaluation.reporting.tables.values import Value
from evaluation.reporting.terminal import align
from evaluation.settings.tiers import TIERS, TierName

Format = Literal["text", "csv", "latex"]
Key = tuple[TierName, str]
"""Tier and item."""

_ARROWS = {"better": "▲", "worse": "▼"}
_LATEX = {"▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$", "–": "--"}

_TINTS = {"better": (0x00, 0x72, 0xB2), "worse": (0xC2, 0x41, 0x0C)}
"""The colours of the pages, of which a cell has at most DARKEST."""
DARKEST = 0.45


@dataclass(frozen=True)
class Column:
    """A checkpoint's headline values, and what differs from the column that it is compared with.

    `deltas` are there where cells are to be coloured by them.
    """

    label: str
    values: Mapping[Key, Value]
    flags: Mapping[Key, str]
    deltas: Mapping[Key, float] = field(default_factory=dict)


def shown_metric(tier: TierName) -> str:
    return TIERS[tier].shown


def written(columns: Sequence[Column], form: Format) -> str:
    """The table, with the interval of each value."""
    return {"text": _text, "csv": as_csv, "latex": _latex}[form](columns)


def _keys(columns: Sequence[Column]) -> list[Key]:
    found = dict.fromkeys(key for column in columns for key in column.values)
    order = list(TIERS)
    return sorted(found, key=lambda key: order.index(key[0]))


def _rows(columns: Sequence[Column]) -> Iterator[tuple[Key, list[str]]]:
    for key in _keys(columns):
        yield key, [_cell(column, key) for column in columns]


def _cell(column: Column, key: Key, *, has_interval: bool = True) -> str:
    value = column.values.get(key)
    if value is None:
        return "–"
    metric = TIERS[value.tier].metric(value.metric)
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    told = [f"{scale * value.value:.{digits}f}"]
    if has_interval and value.low is not None and value.high is not None:
        told.append(f"[{scale * value.low:.{digits}f}, {scale * value.high:.{digits}f}]")
    told.append(_ARROWS.get(column.flags.get(key, ""), ""))
    return " ".join(word for word in told if word)


def _name(key: Key) -> tuple[str, str]:
    tier = TIERS[key[0]]
    metric = tier.metric(tier.shown)
    unit = "%" if metric.unit == "fraction" else metric.unit
    return f"{tier.title} ({unit})", key[1]


def _text(columns: Sequence[Column]) -> str:
    rows = [["", "item", *(column.label for column in columns)]]
    rows += [[*_name(key), *cells] for key, cells in _rows(columns)]
    return align(rows) + "\n"


def as_csv(columns: Sequence[Column]) -> str:
    """Numbers in full, in the units of the result files; what is known of each beside it."""
    has_deltas = any(column.deltas for column in columns)
    names = ("value", "low", "high", *(["delta"] if has_deltas else []), "flag")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column.label} {name}" for column in columns for name in names]
    writer.writerow(map(csv_cell, ["tier", "item", "metric", *heads]))
    for key in _keys(columns):
        cells = [_numbers(column, key)[name] for column in columns for name in names]
        writer.writerow(map(csv_cell, [*key, shown_metric(key[0]), *cells]))
    return out.getvalue()


def _numbers(column: Column, key: Key) -> Mapping[str, object]:
    value = column.values.get(key)
    if value is None:
        return dict.fromkeys(("value", "low", "high", "delta", "flag"), "")
    return {
        "value": value.value,
        "low": value.low,
        "high": value.high,
        "delta": column.deltas.get(key),
        "flag": column.flags.get(key, ""),
    }


def _latex(columns: Sequence[Column]) -> str:
    """A `tabular` in the style of booktabs; the arrows need amssymb."""
    rows = [(key, [_escaped(cell) for cell in cells]) for key, cells in _rows(columns)]
    return _tabular(columns, rows)


def heat_map(columns: Sequence[Column], note: str) -> str:
    """A `tabular` whose cells are coloured by their deltas, without intervals.

    The darkest cell of a tier is the one that moved most. `note` says what is compared with what.
    """
    most = {
        tier: max((abs(d) for c in columns for k, d in c.deltas.items() if k[0] == tier), default=0)
        for tier in TIERS
    }
    rows = [
        (key, [_tinted(column, key, most[key[0]]) for column in columns]) for key in _keys(columns)
    ]
    lines = (
        "% \\usepackage{booktabs, amssymb} \\usepackage[table]{xcolor}",
        f"% {note}",
        _tabular(columns, rows),
    )
    return "\n".join(lines)


def _tinted(column: Column, key: Key, most: float) -> str:
    text, delta = _escaped(_cell(column, key, has_interval=False)), column.deltas.get(key)
    if not delta or not most:
        return text
    is_gain = (delta > 0) == TIERS[key[0]].metric(shown_metric(key[0])).higher_is_better
    share = DARKEST * abs(delta) / most
    tint = _TINTS["better" if is_gain else "worse"]
    mixed = "".join(f"{round(255 - share * (255 - part)):02X}" for part in tint)
    return rf"\cellcolor[HTML]{{{mixed}}}{text}"


def _tabular(columns: Sequence[Column], rows: Sequence[tuple[Key, list[str]]]) -> str:
    """Rows of escaped cells, a heading above those of each tier."""
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    lines.append(" & ".join(["", *(_escaped(column.label) for column in columns)]) + r" \\")
    title = ""
    for key, cells in rows:
        name, item = _name(key)
        if name != title:
            lines += [
                r"\midrule",
                rf"\multicolumn{{{1 + len(columns)}}}{{l}}{{{_escaped(name)}}} \\",
            ]
            title = name
        lines.append(" & ".join([_escaped(item), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    text = latex(text)
    for char, command in _LATEX.items():
        text = text.replace(f" {char}", command) if char in "▲▼" else text.replace(char, command)
    return text
