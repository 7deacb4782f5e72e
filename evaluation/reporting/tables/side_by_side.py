"""The command `table`: checkpoints as columns, items as rows, as text, CSV or LaTeX.

Each checkpoint is compared with the column before, with Holm's correction over all items of the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError
from evaluation.reporting.tables.values import values_of
from evaluation.reporting.terminal import as_table
from evaluation.results.columns import csv_cell
from evaluation.results.read import read_folder
from evaluation.settings.tiers import TIERS

LEGEND = (
    "▲ better, ▼ worse than the column before by the paired test (Holm's correction over all items of "
    "the two); a value without an interval has too few items for one"
)
ARROWS = {"better": " ▲", "worse": " ▼"}
_LATEX = {" ▲": r"$^{\blacktriangle}$", " ▼": r"$^{\blacktriangledown}$", "–": "--"}
"""In LaTeX, where arrows need the package amssymb."""

Row = dict[str, Any]
"""Tier, item and metric that represents it, and under `<label> value` and so on what columns have."""


def side_by_side(folders: Mapping[str, Path]) -> tuple[list[Row], list[str]]:
    """Return a row for each item, means first, and a sentence for each pair of columns that is not tested."""
    sides, rows, notes = {n: read_folder(at) for n, at in folders.items()}, dict[Any, Row](), []
    for label, side in sides.items():
        values, metrics = values_of(side), dict[tuple[str, str], set[str]]()
        for value in values:
            metrics.setdefault((value.tier, value.item), set()).add(value.metric)
        for v in values:
            if v.metric == TIERS[v.tier].shown_of(metrics[v.tier, v.item]):
                place = {"tier": v.tier, "item": v.item, "metric": v.metric}
                row = rows.setdefault((v.tier, v.item, v.metric), place)
                row |= {f"{label} {name}": getattr(v, name) for name in ("value", "low", "high")}
                row[f"{label} flag"] = None
    for before, label in pairwise(sides):
        ours, theirs = sides[label], sides[before]
        shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
        try:
            for delta in compare(replace(ours, tiers=shared), theirs) if shared else ():
                key = delta.tier, delta.item, delta.metric.removeprefix("delta_")
                rows.get(key, {})[f"{label} flag"] = delta.flag
        except BridgeError as error:
            notes.append(f"{label} is not tested against {before}: {error}")
    return sorted(rows.values(), key=_place), notes


def _place(row: Row) -> tuple[int, bool, bool, bool]:
    tier, item, metric = row["tier"], row["item"], row["metric"]
    is_item = not is_mean(tier, item)
    return [*TIERS].index(tier), metric != TIERS[tier].shown, item != OVERALL, is_item


def as_csv(rows: Sequence[Row]) -> str:
    """Return rows with unrounded numbers, in the units of files."""
    return str(pd.DataFrame(rows).rename(columns=csv_cell).map(csv_cell).to_csv(index=False))


def as_text(rows: Sequence[Row], labels: Sequence[str], *, latex: bool = False) -> str:
    """Return rows as a table for the terminal, or of LaTeX."""
    cells = [[_title(row), row["item"], *(_cell(row, label) for label in labels)] for row in rows]
    text = as_table([["", "item", *labels], *cells], "latex_booktabs" if latex else "simple")
    for character, command in _LATEX.items() if latex else ():
        text = text.replace(character, command)
    return text + "\n"


def _title(row: Row) -> str:
    tier = TIERS[row["tier"]]
    unit = tier.metric(row["metric"]).unit
    return f"{tier.title} ({'%' if unit == 'fraction' else unit})"


def _cell(row: Row, label: str) -> str:
    metric = TIERS[row["tier"]].metric(row["metric"])
    value, low, high, flag = (row.get(f"{label} {n}") for n in ("value", "low", "high", "flag"))
    if value is None:
        return "–"
    scale, digits = (100, 1) if metric.unit == "fraction" else (1, metric.digits)
    bounds = (
        ""
        if low is None or high is None
        else f" [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"
    )
    return f"{scale * value:.{digits}f}{bounds}{ARROWS.get(flag or '', '')}"
