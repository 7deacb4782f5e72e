"""The columns of tables: writers take their Arrow schemas from here, and readers check files against them."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.errors import printable
from evaluation.files import atomic_path
from evaluation.results.files import reading, unusable

Columns = Mapping[str, str]
"""Arrow's type by column, followed by `[]` where values are lists, and by `?` where they may be null."""

NUMBER, TEXT = "double?", "string?"


def arrow_schema(columns: Columns) -> pa.Schema:
    """Return the schema of a table of these columns."""
    return pa.schema([(name, _type(kind)) for name, kind in columns.items()])


def _type(kind: str) -> pa.DataType:
    alias = pa.type_for_alias(kind.rstrip("[]?"))
    return pa.list_(alias) if "[]" in kind else alias


def read_table(path: Path, columns: Columns, again: str, variants: str = "") -> pa.Table:
    """Read the given columns of a Parquet file, and check them; where one that may be null is missing, it is.

    Args:
        again: How such a file is made, for messages.
        variants: Beginning of the names of further columns of numbers; empty: there are none.

    Raises:
        ResultsError: No such file, not Parquet, or a column that is missing or of another type, or
            has nulls or numbers that are not finite where there can be none.
    """
    try:
        with reading(path, again), pq.ParquetFile(path) as file:
            table = file.read()
        table.validate(full=True)
        others = [one for one in table.column_names if variants and one.startswith(variants)]
        kinds = dict(columns) | {name: NUMBER for name in others if name not in columns}
        for name, kind in kinds.items():
            if name not in table.column_names and kind.endswith("?"):
                table = table.append_column(name, pa.nulls(table.num_rows, _type(kind)))
        table = table.select([*kinds]).cast(arrow_schema(kinds))
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise unusable(path, f"damaged ({' '.join(str(error).split())})", again) from None
    for name in table.column_names:
        _check(path, name, table[name], kinds[name], again)
    return table


def _check(path: Path, name: str, values: pa.ChunkedArray, kind: str, again: str) -> None:
    if values.null_count and not kind.endswith("?"):
        raise unusable(path, f"the column {name!r} has nulls", again)
    numbers = pc.list_flatten(values) if "[]" in kind else values
    if "double" in kind and not pc.all(pc.is_finite(numbers), min_count=0).as_py():
        raise unusable(path, f"the column {name!r} has NaN or infinite values", again)


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows under a header line; None or a missing value is an empty cell, other keys are left out."""
    names = [*columns]
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({name: csv_cell(row.get(name)) for name in names} for row in rows)


def csv_cell(value: object) -> object:
    """Return a value as a CSV cell; an apostrophe precedes text that a spreadsheet would compute."""
    text = printable(value) if isinstance(value, str) else ""
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text or value
