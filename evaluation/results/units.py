"""The table of a tier's units, of one form for all tiers: `collect` writes it, and all later steps read it.

A row is a block, question or prompt of an item: what it is about, the groups that it depends on, and what
it contributes to each metric. Details such as candidates and answers are in the tier's items file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.metrics.layout import Layout
from evaluation.metrics.positions import NATS, TOKENS, Positions, positions_of
from evaluation.metrics.ratios import Ratio, ratio_of
from evaluation.metrics.variance import Floats
from evaluation.results.columns import NUMBER, TEXT, Columns, arrow_schema, read_table
from evaluation.results.files import COLLECT_AGAIN, unusable
from evaluation.settings.tiers import Tier

SOURCES = ("question", "row")
"""Columns of names of what a unit asks; units that share one in a column are not independent."""

_ABOUT: Columns = {
    "item": TEXT,
    "unit": "string",
    **dict.fromkeys((*SOURCES, "cluster", "stratum", "strata"), TEXT),
}
_POSITIONS: Columns = dict.fromkeys((NATS, TOKENS), "double[]?")


@dataclass(frozen=True, kw_only=True)
class Units:
    """The blocks, questions or prompts of an item, in the file's order: (n,) of everything.

    `measured` has what each metric adds up and divides by; amounts are NaN for units without a verdict,
    or that do not count for the metric. `sums` are the columns that ratios of blocks are made of, and
    `positions` their nats by position, where the scorer stored them. `groupings` are fixed groups to
    report by, such as level and subject: the group of each unit, by grouping.
    """

    ids: Sequence[str]
    layout: Layout
    measured: Mapping[str, Ratio]
    sums: Mapping[str, Floats] = field(default_factory=dict)
    positions: Positions | None = None
    groupings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)


ByItem = Mapping[str | None, Units]
"""Units by their item; None for all units of a tier of rates together."""


def groupings_of(
    ids: Sequence[str], strata: Sequence[Mapping[str, object]]
) -> dict[str, dict[str, str]]:
    """Return the group of each unit by grouping, given those of each unit."""
    groupings: dict[str, dict[str, str]] = {}
    for unit, groups in zip(ids, strata, strict=True):
        for by, group in groups.items():
            groupings.setdefault(by, {})[unit] = str(group)
    return groupings


def units_of(
    tier: Tier, ids: Sequence[str], layout: Layout, columns: Mapping[str, Floats], **more: Any
) -> Units:
    """Return units with the metrics that their columns give.

    A metric is the ratio of two columns that the tier names, or else a mean of the column of its own name, in
    which NaN marks units that do not count. Any other column is a variant of the headline, such as another
    verifier's pass rate.
    """
    sums = {name: columns[name] for name in tier.summed if name in columns}
    means = {n: c for n, c in columns.items() if n not in sums and np.isfinite(c).any()}
    variants = [name for name in means if name.startswith(f"{tier.headline}_")]
    measured: dict[str, Ratio] = {}
    for metric in tier.metrics:
        ratio = ratio_of(metric, sums) if metric.numerator else None
        names = [metric.name, *(variants if metric.name == tier.headline else ())]
        found = {metric.name: ratio} if ratio else {n: Ratio(means[n]) for n in names if n in means}
        measured |= found
    return Units(ids=ids, layout=layout, measured=measured, sums=sums, **more)


def _columns(tier: Tier) -> Columns:
    """Return the columns of a tier's table of units; variants of the headline have further ones."""
    means = [metric.name for metric in tier.metrics if not metric.numerator]
    positions = _POSITIONS if tier.kind == "nats" else {}
    return {**_ABOUT, **positions, **dict.fromkeys((*tier.summed, *means), NUMBER)}


def units_table(tier: Tier, units: ByItem) -> pa.Table:
    """Return the table of a tier's units."""
    parts = [_cells(item, of_item) for item, of_item in units.items()]
    names = dict.fromkeys(name for part in parts for name in part)
    columns = dict(_columns(tier))
    schema = arrow_schema(columns | {name: NUMBER for name in names if name not in columns})
    tables = [
        pa.Table.from_arrays(
            [
                pa.array(part.get(one.name, [None] * len(part["unit"])), one.type, from_pandas=True)
                for one in schema
            ],
            schema=schema,
        )
        for part in parts
    ]
    return pa.concat_tables(tables)


def _cells(item: str | None, units: Units) -> dict[str, Any]:
    layout, groupings = units.layout, units.groupings

    def strata(unit: str) -> str:
        return json.dumps({by: of[unit] for by, of in groupings.items() if unit in of})

    cells: dict[str, Any] = {
        "item": [item] * layout.size,
        "unit": [*units.ids],
        **dict(zip(SOURCES, layout.sources, strict=False)),
        **({"cluster": layout.clusters} if layout.clusters else {}),
        **({"stratum": layout.strata} if layout.strata else {}),
        **({"strata": [*map(strata, units.ids)]} if units.groupings else {}),
        **units.sums,
        **{name: ratio.amounts for name, ratio in units.measured.items() if ratio.weights is None},
    }
    if units.positions is not None:
        cells |= {NATS: units.positions.nats.tolist(), TOKENS: units.positions.tokens.tolist()}
    return cells


def read_units(tier: Tier, path: Path) -> dict[str | None, Units]:
    """Read a tier's units by item, in the order of the file; raise ResultsError."""
    table = read_table(path, _columns(tier), COLLECT_AGAIN, f"{tier.headline}_")
    encoded = table["item"].combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = [*encoded.dictionary.to_pylist(), None]
    return {
        names[code]: _item_units(tier, table.filter(codes == code), names[code], path)
        for code in dict.fromkeys(codes.tolist())
    }


def _item_units(tier: Tier, rows: pa.Table, name: str | None, path: Path) -> Units:
    about = {column: rows[column].to_pylist() for column in _ABOUT}
    ids = about["unit"]
    if len({*ids}) < len(ids):
        raise unusable(path, f"a unit of {name!r} appears twice")
    columns = {
        column: rows[column].to_numpy().astype(np.float64)
        for column in rows.column_names
        if column not in {*_ABOUT, *_POSITIONS}
        and not (column in tier.summed and rows[column].null_count)
    }
    clusters, strata = (
        None if None in about[key] else about[key] for key in ("cluster", "stratum")
    )
    sources = [about[column] for column in SOURCES]
    layout = Layout(len(ids), clusters, strata, sources, is_text=tier.kind == "nats")
    try:
        groupings = groupings_of(ids, [json.loads(text or "{}") for text in about["strata"]])
    except (ValueError, AttributeError):
        raise unusable(path, "the column 'strata' has what is no JSON object") from None
    positions = positions_of(rows)
    units = units_of(tier, ids, layout, columns, positions=positions, groupings=groupings)
    credits = [r.amounts for m, r in units.measured.items() if m.startswith(tier.headline)]
    if tier.kind == "credit" and any(((one < 0) | (one > 1)).any() for one in credits):
        raise unusable(path, f"a mean score of {name!r} is not in [0, 1]")
    return units
