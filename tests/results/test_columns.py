"""Tables whose columns somebody dropped, added or changed: one sentence that names the column or the item."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.settings.plan import StagePlan
from tests.results.test_damaged import place, refused

Change = Callable[[pa.Table], pa.Table]


def drop(name: str) -> Change:
    return lambda table: table.drop_columns([name])


def each(name: str, value: Callable[[int, Any], Any]) -> Change:
    """A column whose values are made from the index and the value that was there."""

    def change(table: pa.Table) -> pa.Table:
        values = [value(i, old) for i, old in enumerate(table[name].to_pylist())]
        return table.set_column(table.column_names.index(name), name, pa.array(values))

    return change


def of_another_scoring(table: pa.Table) -> pa.Table:
    """Twice the loss, in all and by position."""
    table = each("nats", lambda i, v: 2 * v)(table)
    return each("nats_by_position", lambda i, v: [2 * one for one in v])(table)


BLOCKS: list[tuple[Change, str]] = [
    (drop("nats"), "no column 'nats'"),
    (each("nats", lambda i, v: v if i else float("nan")), "'nats' has NaN"),
    (each("block", lambda i, v: 3), "appears twice"),
    (lambda t: t.slice(0, 0), "no rows of 'web'"),
    (
        lambda t: pa.Table.from_arrays([*t.columns, t["nats"]], [*t.column_names, "nats"]),
        "'nats' appears twice",
    ),
]
CANDIDATES: list[tuple[Change, str]] = [
    (drop("gold"), "no column 'gold'"),
    (each("gold", lambda i, v: False), "has no right candidate"),
    (each("chars", lambda i, v: 0), "has no chars"),
    (each("item", lambda i, v: f"q/{i % 5}"), "do not stand together"),
    (each("item", lambda i, v: f"q/{i}"), "one candidate leaves nothing to choose"),
    (each("logprob", lambda i, v: -v), "the two are not of one scoring"),
]
BLOCK_UNITS: list[tuple[Change, str]] = [
    (drop("unit"), "no column 'unit'"),
    (each("nats", lambda i, v: v if i else float("nan")), "'nats' has NaN"),
    (each("nats", lambda i, v: "a"), "of type string, not double"),
    (each("nats", lambda i, v: 1e9), "no perplexity"),
    (each("nats", lambda i, v: 2 * v), "by position are not those of its blocks"),
    (of_another_scoring, "tier2_ppl.json says"),
    (each("tokens", lambda i, v: 0.0), "no scored token"),
    (each("bytes", lambda i, v: -v), "less than none"),
    (each("unit", lambda i, v: "3"), "appears twice"),
    (each("item", lambda i, v: f"x{v}"), "no rows of 'web'"),
]
QUESTION_UNITS: list[tuple[Change, str]] = [
    (drop("acc"), "'quiz' has no accuracy"),
    (each("acc", lambda i, v: 1 - v), "the two are not of one scoring"),
    (each("acc", lambda i, v: 2 * v), "is not in [0, 1]"),
    (each("acc_per_char", lambda i, v: "a"), "of type string, not double"),
    (each("strata", lambda i, v: "[1"), "the column 'strata' has '[1'"),
]
PROMPT_UNITS: list[tuple[Change, str]] = [
    (each("all_checks_pass_rate", lambda i, v: None), "has no all checks pass rate"),
    (each("all_checks_pass_rate", lambda i, v: 0.25), "give a mean of 0.25, and tier4"),
]
COLUMNS: list[tuple[str, Change, str]] = [
    *(("tier2_ppl_units.parquet", *case) for case in BLOCK_UNITS),
    *(("tier3_cf_units.parquet", *case) for case in QUESTION_UNITS),
    *(("tier4_sft_native_units.parquet", *case) for case in PROMPT_UNITS),
    *(("tier2_ppl_blocks.parquet", *case) for case in BLOCKS),
    *(("tier3_cf_candidates.parquet", *case) for case in CANDIDATES),
    ("stage/summary.parquet", drop("value"), "no column 'value'"),
    ("stage/summary.parquet", each("tier", lambda i, v: "tier9"), "tier"),
]


@pytest.mark.parametrize(("name", "change", "fragment"), COLUMNS)
def test_a_wrong_column_is_named(
    plans: dict[str, StagePlan], name: str, change: Change, fragment: str
) -> None:
    path, reader = place(plans["second"], name)
    pq.write_table(change(pq.read_table(path)), path)
    refused(path, reader, fragment)
