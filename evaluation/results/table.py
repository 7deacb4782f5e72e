"""The long table of a stage, `summary.parquet` and `summary.csv`: everything that shows a number reads it.

A row is one metric of one item of one checkpoint, with its delta against another checkpoint where there is
one. `item` may be a mean, such as `overall` or `reading (group)`; `position` is the first token of a bin of
positions, in rows about these alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.files import write_parquet
from evaluation.results.columns import (
    NUMBER,
    TEXT,
    Columns,
    arrow_schema,
    read_table,
    write_csv,
)
from evaluation.results.files import RUN_AGAIN, unusable
from evaluation.settings.tiers import TIERS

SUMMARY = "summary.parquet"
SUMMARY_TABLE = "summary.csv"

TABLE_COLUMNS: Columns = {
    "stage": "string",
    "checkpoint": "string",
    "step": "int64?",
    "role": "string",
    **dict.fromkeys(("tokens", "tokens_before"), "int64?"),
    **dict.fromkeys(("tier", "item"), "string"),
    "group": TEXT,
    **dict.fromkeys(("metric", "unit"), "string"),
    **dict.fromkeys(("higher_is_better", "primary"), "bool"),
    "value": "double",
    **dict.fromkeys(("low", "high"), NUMBER),
    "n": "int64",
    "chance": NUMBER,
    "against": TEXT,
    **dict.fromkeys(("delta", "delta_low", "delta_high", "p", "p_holm", "mde"), NUMBER),
    **dict.fromkeys(("flag", "verdict"), TEXT),
    "position": "int64?",
    "deleted": "bool",
    "note": TEXT,
    **dict.fromkeys(("gained", "lost"), "int64?"),
}

TableRows = list[dict[str, Any]]
"""Rows of a long table, values by column."""


def delta_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the table has of a delta, from its columns in `bridge_deltas.json`."""
    names = ("delta", "p", "p_holm", "mde", "flag", "gained", "lost")
    bounds = {"delta_low": row["low"], "delta_high": row["high"]}
    return {name: row.get(name) for name in names} | bounds


def read_rows(path: Path) -> TableRows:
    """Read the rows of a stage's table; raise ResultsError."""
    rows: TableRows = read_table(path, TABLE_COLUMNS, RUN_AGAIN).to_pylist()
    for row in rows:
        if row["tier"] not in TIERS or row["role"] not in ("step", "bridge"):
            raise unusable(path, f"a row of tier {row['tier']!r}, role {row['role']!r}", RUN_AGAIN)
    return rows


def write_rows(folder: Path, rows: TableRows) -> None:
    """Write a stage's table in both forms."""
    write_csv(folder / SUMMARY_TABLE, TABLE_COLUMNS, rows)
    table = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE_COLUMNS))
    write_parquet(folder / SUMMARY, table)
