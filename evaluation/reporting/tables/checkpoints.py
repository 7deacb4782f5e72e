"""Several checkpoints side by side, a column each, as a paper prints them: text, CSV or LaTeX.

Each cell is a headline value with its own 95 % interval. An arrow tells that it differs from
the column before by the paired test (Holm's correction over all items of the two): ▲ better, ▼ worse.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from evaluation.bridge.deltas import OVERALL, compare, headline_delta
from evaluation.errors import BridgeError, ResultsError
from evaluation.reporting.tables.values import Value, values_of
from evaluation.reporting.terminal import align
from evaluation.results.read import Results, read_results, tiers_in
from evaluation.settings.tiers import TIERS, TierName

Format = Literal["text", "csv", "latex"]
Key = tuple[TierName, str]
"""Tier and item."""

_ARROWS = {"better": "▲", "worse": "▼"}
_LATEX = {"▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$", "–": "--"}
_ESCAPED = str.maketrans({c: f"\\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}"})


@dataclass(frozen=True)
class Column:
    """A checkpoint's headline values, and what differs from the column before."""

    label: str
    values: Mapping[Key, Value]
    flags: Mapping[Key, str]


def table_of(folders: Mapping[str, Path], form: Format) -> tuple[str, list[str]]:
    """The table of result folders by label, and a sentence for each pair that cannot be paired.

    Raises:
        ResultsError: a folder has no results, or damaged ones.
    """
    sides = {label: _read(folder) for label, folder in folders.items()}
    flags: dict[str, dict[Key, str]] = {}
    notes = []
    for before, label in pairwise(sides):
        try:
            flags[label] = _flags(sides[label], sides[before])
        except BridgeError as error:
            notes.append(f"{label} is not tested against {before}: {error}")
    columns = [Column(name, _headlines(one), flags.get(name, {})) for name, one in sides.items()]
    return {"text": _text, "csv": _csv, "latex": _latex}[form](columns), notes


def _read(folder: Path) -> Results:
    if not (tiers := tiers_in(folder)):
        raise ResultsError(
            f"{folder}: no tier files; name a folder such as by_checkpoint/step_1000"
        )
    return read_results(folder, tiers)


def _headlines(results: Results) -> dict[Key, Value]:
    """The overall value of each tier is its first row."""
    found = [one for one in values_of(results) if one.metric == _metric(one.tier)]
    return {(v.tier, v.item): v for v in sorted(found, key=lambda v: v.item != OVERALL)}


def _metric(tier: TierName) -> str:
    return TIERS[tier].shown


def _flags(ours: Results, theirs: Results) -> dict[Key, str]:
    """Of the tiers that both have."""
    shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
    if not shared:
        return {}
    return {
        (delta.tier, delta.item): delta.flag
        for delta in compare(replace(ours, tiers=shared), theirs)
        if delta.flag is not None and delta.metric == headline_delta(delta.tier)
    }


def _keys(columns: Sequence[Column]) -> list[Key]:
    found = dict.fromkeys(key for column in columns for key in column.values)
    order = list(TIERS)
    return sorted(found, key=lambda key: order.index(key[0]))


def _rows(columns: Sequence[Column]) -> Iterator[tuple[Key, list[str]]]:
    for key in _keys(columns):
        yield key, [_cell(column, key) for column in columns]


def _cell(column: Column, key: Key) -> str:
    value = column.values.get(key)
    if value is None:
        return "–"
    metric = TIERS[value.tier].metric(value.metric)
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    told = [f"{scale * value.value:.{digits}f}"]
    if value.low is not None and value.high is not None:
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


def _csv(columns: Sequence[Column]) -> str:
    """Numbers in full, in the units of the result files; low, high and flag beside each value."""
    heads = [f"{c.label} {what}" for c in columns for what in ("value", "low", "high", "flag")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["tier", "item", "metric", *heads])
    for key in _keys(columns):
        cells = [cell for column in columns for cell in _numbers(column, key)]
        writer.writerow([*key, _metric(key[0]), *cells])
    return out.getvalue()


def _numbers(column: Column, key: Key) -> list[object]:
    value = column.values.get(key)
    if value is None:
        return ["", "", "", ""]
    return [value.value, value.low, value.high, column.flags.get(key, "")]


def _latex(columns: Sequence[Column]) -> str:
    """A `tabular` in the style of booktabs; the arrows need amssymb."""
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    lines.append(" & ".join(["", *(_escaped(column.label) for column in columns)]) + r" \\")
    title = ""
    for key, cells in _rows(columns):
        name, item = _name(key)
        if name != title:
            lines += [
                r"\midrule",
                rf"\multicolumn{{{1 + len(columns)}}}{{l}}{{{_escaped(name)}}} \\",
            ]
            title = name
        lines.append(" & ".join([_escaped(item), *map(_escaped, cells)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    text = text.translate(_ESCAPED)
    for char, command in _LATEX.items():
        text = text.replace(f" {char}", command) if char in "▲▼" else text.replace(char, command)
    return text
