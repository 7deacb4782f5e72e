"""The columns of tables: writers take their Arrow schemas from here, and readers check files against them."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from evaluation.files import atomic_path
from evaluation.results.escaping import csv_cell
from evaluation.results.files import FileModel, reading, unusable

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
"""Columns of stored blocks."""

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
    Column("question", "string", nullable=True),
    Column("row", "string", nullable=True),
)
"""`tier3_cf_candidates.parquet`: a row for each candidate, a question's rows together."""

_ARROW = {str: "string", int: "int64", float: "double", bool: "bool"}


def columns_of(model: type[FileModel], first: str = "") -> tuple[Column, ...]:
    """Return the columns of a table whose rows are records of plain values, those named `first` first."""
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


def _arrow_type(name: str) -> "pa.DataType":
    import pyarrow as pa

    alias = pa.type_for_alias(name.removesuffix("[]"))
    return pa.list_(alias) if name.endswith("[]") else alias


def read_table(
    path: Path, columns: Sequence[Column], again: str, variants: str | None = None
) -> "pa.Table":
    """Read the given columns of a Parquet file, and check them; one that may be null may be missing.

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
        with reading(path, again), pq.ParquetFile(path) as file:
            table = file.read()
        listed = {column.name: column for column in columns}
        for name in table.column_names if variants is not None else ():
            if variants and name.startswith(variants):
                listed.setdefault(name, Column(name, "double", nullable=True))
        names = table.column_names
        for column in listed.values():
            if names.count(column.name) > 1 or not (column.nullable or column.name in names):
                found = "twice" if column.name in names else "nowhere"
                raise unusable(path, f"the column {column.name!r} is there {found}", again)
        table = table.select([name for name in listed if name in names])
        table.validate(full=True)
        for name in table.column_names:
            table = _checked(path, table, listed[name], again)
    except (pa.ArrowException, ValueError) as error:
        raise unusable(path, f"damaged ({' '.join(str(error).split())})", again) from None
    return table


def _checked(path: Path, table: "pa.Table", column: Column, again: str) -> "pa.Table":
    import pyarrow.compute as pc

    values = table[column.name].cast(_arrow_type(column.type))
    if values.null_count and not column.nullable:
        raise unusable(path, f"the column {column.name!r} has nulls", again)
    numbers = pc.list_flatten(values) if column.type.endswith("[]") else values
    if "double" in column.type and not pc.all(pc.is_finite(numbers), min_count=0).as_py():
        raise unusable(path, f"the column {column.name!r} has NaN or infinite values", again)
    return table.set_column(table.column_names.index(column.name), column.name, values)


def write_csv(path: Path, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows under a header line; None or a missing value is an empty cell, other keys are left out."""
    names = [column.name for column in columns]
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: csv_cell(row.get(key)) for key in names} for row in rows)
