"""The long table of a stage, `summary.parquet` and `summary.csv`: everything that shows a number reads it.

A row is one metric of one item of one checkpoint, with its delta against another checkpoint where there is
one. `item` may be a mean, such as `overall` or `reading (group)`; `position` is the first token of a bin of
positions, in rows about these alone.
"""

from pathlib import Path
from typing import Any

from evaluation.results.columns import Column, read_table, write_csv
from evaluation.results.files import RUN_AGAIN, unusable
from evaluation.settings.tiers import TIERS

SUMMARY = "summary.parquet"
SUMMARY_TABLE = "summary.csv"

TABLE_COLUMNS = (
    Column("stage", "string"),
    Column("checkpoint", "string"),
    Column("step", "int64", nullable=True),
    Column("role", "string"),
    Column("tokens", "int64", nullable=True),
    Column("tokens_before", "int64", nullable=True),
    Column("tier", "string"),
    Column("item", "string"),
    Column("group", "string", nullable=True),
    Column("metric", "string"),
    Column("unit", "string"),
    Column("higher_is_better", "bool"),
    Column("primary", "bool"),
    Column("value", "double"),
    Column("low", "double", nullable=True),
    Column("high", "double", nullable=True),
    Column("n", "int64"),
    Column("chance", "double", nullable=True),
    Column("against", "string", nullable=True),
    Column("delta", "double", nullable=True),
    Column("delta_low", "double", nullable=True),
    Column("delta_high", "double", nullable=True),
    Column("p", "double", nullable=True),
    Column("p_holm", "double", nullable=True),
    Column("mde", "double", nullable=True),
    Column("flag", "string", nullable=True),
    Column("verdict", "string", nullable=True),
    Column("position", "int64", nullable=True),
    Column("deleted", "bool"),
    Column("note", "string", nullable=True),
)

TableRows = list[dict[str, Any]]
"""Rows of a long table, values by column."""


def read_rows(path: Path, *, by_position: bool = False) -> TableRows:
    """Read the rows of a stage's table, without those about positions or only these; raise ResultsError."""
    rows: TableRows = read_table(path, TABLE_COLUMNS, RUN_AGAIN).to_pylist()
    for row in rows:
        if row["tier"] not in TIERS or row["role"] not in ("step", "bridge"):
            raise unusable(path, f"a row of tier {row['tier']!r}, role {row['role']!r}", RUN_AGAIN)
    return [row for row in rows if (row["position"] is not None) == by_position]


def write_rows(folder: Path, rows: TableRows) -> None:
    """Write a stage's table in both forms."""
    import pyarrow as pa

    from evaluation.files import write_parquet
    from evaluation.results.columns import arrow_schema

    write_csv(folder / SUMMARY_TABLE, TABLE_COLUMNS, rows)
    table = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE_COLUMNS))
    write_parquet(folder / SUMMARY, table)
