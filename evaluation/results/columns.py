"""The columns of tables: per-item Parquet files, `summary.*` and `bridge_deltas.csv`.

Writers take their Arrow schemas from here, and readers check files against them.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from evaluation.errors import ResultsError, one_line
from evaluation.files import atomic_path
from evaluation.results.escaping import csv_cell
from evaluation.results.files import FileModel, unreadable, unusable
from evaluation.settings.tiers import TIERS

if TYPE_CHECKING:  # takes a while to import, and every command imports this module
    import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """A column of a table; `type` is Arrow's name, followed by `[]` where values are lists."""

    name: str
    type: str
    nullable: bool = False


BLOCKS = (
    Column("slice", "string"),
    Column("block", "int32"),
    Column("nats", "double"),
    Column("tokens", "int32"),
    Column("bytes", "int64"),
    Column("nats_by_position", "double[]", nullable=True),
    Column("tokens_by_position", "int32[]", nullable=True),
)
"""`tier2_ppl_blocks.parquet`: a row per block."""

SOURCES = (
    Column("question", "string", nullable=True),
    Column("row", "string", nullable=True),
)
"""Names of the source row that a question asks; those that share one are not independent."""

CANDIDATES = (
    Column("task", "string"),
    Column("item", "string"),
    Column("cluster", "string", nullable=True),
    Column("stratum", "string", nullable=True),
    Column("candidate", "int16"),
    Column("gold", "bool"),
    Column("logprob", "double"),
    Column("unconditional", "double", nullable=True),
    Column("tokens", "int32"),
    Column("chars", "int32"),
    Column("bytes", "int32"),
    Column("is_greedy", "bool", nullable=True),
    *SOURCES,
)
"""Columns of stored candidates: a row for each, a question's rows together."""

MEASURED = (
    *CANDIDATES,
    *(Column(metric.name, "double", nullable=True) for metric in TIERS["tier3"].secondary),
)
"""`tier3_cf_candidates.parquet`: the same with measures of each question, in its first row."""

_ARROW = {str: "string", int: "int64", float: "double", bool: "bool"}


def columns_of(model: type[FileModel], first: str = "") -> tuple[Column, ...]:
    """Return the columns of a table whose rows are records of plain values.

    Args:
        first: Names of columns that come first, separated by spaces; the others keep the model's
            order.
    """
    fields, columns = model.model_fields, []
    for name in dict.fromkeys([*first.split(), *fields]):
        kinds = get_args(fields[name].annotation) or (fields[name].annotation,)
        plain = next((k for k in kinds if k in _ARROW), str)  # a Literal is text
        columns.append(Column(name, _ARROW[plain], NoneType in kinds))
    return tuple(columns)


def arrow_schema(columns: Sequence[Column]) -> "pa.Schema":
    """Return the schema of a table of these columns."""
    import pyarrow as pa

    return pa.schema([(column.name, _arrow_type(column.type)) for column in columns])


def with_columns(table: "pa.Table", columns: Sequence[Column]) -> "pa.Table":
    """Return a table with all columns in order; those that an earlier version did not store are null."""
    import pyarrow as pa

    missing = (column for column in columns if column.name not in table.column_names)
    for column in missing:
        table = table.append_column(column.name, pa.nulls(table.num_rows, _arrow_type(column.type)))
    return table.select([column.name for column in columns])


def _arrow_type(name: str) -> "pa.DataType":
    """Return the type of a column."""
    import pyarrow as pa

    alias = pa.type_for_alias(name.removesuffix("[]"))
    return pa.list_(alias) if name.endswith("[]") else alias


def read_table(
    path: Path, columns: Sequence[Column], again: str, variants: str | None = None
) -> "pa.Table":
    """Read the given columns of a Parquet file, and check them; a column that may be null may be missing.

    Args:
        again: How such a file is made, for messages.
        variants: Beginning of the names of further columns of numbers that may be null; None: no such.

    Raises:
        ResultsError: No such file, not Parquet, or a column that is missing or of another type, or
            has nulls or numbers that are not finite where there can be none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not path.exists():
            raise ResultsError(f"{path}: no such file; {again}")
        with pq.ParquetFile(path) as file:
            table = file.read()
        if variants is not None:
            listed = {column.name for column in columns}
            more = [n for n in dict.fromkeys(table.column_names) if n.startswith(variants)]
            columns = [*columns, *(Column(n, "double", True) for n in more if n not in listed)]
        _check_names(path, table.column_names, columns, again)
        table = table.select(
            [column.name for column in columns if column.name in table.column_names]
        )
        table.validate(full=True)
    except PermissionError as error:
        raise unreadable(path, error, again) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unusable(path, f"damaged ({one_line(error)})", again) from None
    for column in columns:
        if column.name in table.column_names:
            table = _checked(path, table, column, again)
    return table


def _check_names(path: Path, names: list[str], columns: Sequence[Column], again: str) -> None:
    for column in columns:
        if names.count(column.name) > 1:
            raise unusable(path, f"the column {column.name!r} appears twice", again)
        if column.name not in names and not column.nullable:
            raise unusable(path, f"no column {column.name!r}", again)


def _checked(path: Path, table: "pa.Table", column: Column, again: str) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    values, what = table[column.name], f"the column {column.name!r}"
    try:
        values = values.cast(_arrow_type(column.type))
    except (pa.ArrowException, ValueError):
        is_of = f"{what} is of type {values.type}, not {column.type}"
        raise unusable(path, is_of, again) from None
    if values.null_count and not column.nullable:
        raise unusable(path, f"{what} has nulls", again)
    numbers = pc.list_flatten(values) if column.type.endswith("[]") else values
    if "double" in column.type and not pc.all(pc.is_finite(numbers), min_count=0).as_py():
        raise unusable(path, f"{what} has NaN or infinite values", again)
    return table.set_column(table.column_names.index(column.name), column.name, values)


def rows_of(table: "pa.Table", column: str, name: str, path: Path, again: str) -> "pa.Table":
    """Return the rows of one item, at least one, without the column that names it; raise ResultsError.

    Args:
        again: How such a file is made, for messages.
    """
    import pyarrow.compute as pc

    rows = table.filter(pc.equal(table[column], name)).drop_columns([column])
    if not rows.num_rows:
        raise unusable(path, f"no rows of {name!r}", again)
    return rows


def write_csv(path: Path, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows under a header line; None or a missing value is an empty cell, other keys are left out."""
    names = [column.name for column in columns]
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: csv_cell(row.get(key)) for key in names} for row in rows)
