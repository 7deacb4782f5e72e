"""The table of a tier's units, of one form for all tiers: `collect` writes it, and all later steps read it.

A row is a block, question or prompt of an item: what it is about, the groups that it depends on, and what
it contributes to each metric. Details such as candidates and answers are in the tier's items file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.positions import NATS, TOKENS, Positions, bin_starts, positions_of
from evaluation.metrics.variance import Floats
from evaluation.results.columns import Column, arrow_schema, read_table, with_columns
from evaluation.results.files import COLLECT_AGAIN, unusable
from evaluation.results.kinds import Units, units_of
from evaluation.settings.metric import LARGEST
from evaluation.settings.tiers import Tier

if TYPE_CHECKING:  # takes a while to import
    import pyarrow as pa

SOURCES = ("question", "row")
"""Columns of names of what a unit asks; units that share one in a column are not independent."""

_ABOUT = (
    Column("item", "string", nullable=True),
    Column("unit", "string"),
    Column("question", "string", nullable=True),
    Column("row", "string", nullable=True),
    Column("cluster", "string", nullable=True),
    Column("stratum", "string", nullable=True),
    Column("strata", "string", nullable=True),
)
_POSITIONS = (
    Column(NATS, "double[]", nullable=True),
    Column(TOKENS, "double[]", nullable=True),
)

ByItem = Mapping[str | None, Units]
"""Units by their item; None for all units of a tier of rates together."""


def unit_columns(tier: Tier) -> tuple[Column, ...]:
    """Return the columns of a tier's table of units; variants of the headline have further ones."""
    means = [metric.name for metric in tier.metrics if not metric.numerator]
    positions = _POSITIONS if tier.kind == "nats" else ()
    return (*_ABOUT, *positions, *map(_number, (*tier.summed, *means)))


def _number(name: str) -> Column:
    return Column(name, "double", nullable=True)


def units_table(tier: Tier, units: ByItem) -> "pa.Table":
    """Return the table of a tier's units."""
    import pyarrow as pa

    columns = {column.name: column for column in unit_columns(tier)}
    for name in (name for item_units in units.values() for name in _numbers(item_units)):
        columns.setdefault(name, _number(name))
    parts = [pa.table(_cells(item, item_units, columns)) for item, item_units in units.items()]
    return pa.concat_tables(with_columns(part, [*columns.values()]) for part in parts)


def _numbers(units: Units) -> dict[str, Floats]:
    means = {name: ratio.amounts for name, ratio in units.measured.items() if ratio.weights is None}
    return {**units.sums, **means}


def _cells(item: str | None, units: Units, columns: Mapping[str, Column]) -> dict[str, "pa.Array"]:
    import pyarrow as pa

    layout, nothing = units.layout, [None] * units.layout.size
    cells: dict[str, Any] = {
        "item": [item] * layout.size,
        "unit": [*units.ids],
        **dict(zip(SOURCES, layout.sources, strict=False)),
        "cluster": layout.clusters or nothing,
        "stratum": layout.strata or nothing,
        "strata": [*_strata(units)] if units.groupings else nothing,
        **_numbers(units),
    }
    if units.positions is not None:
        cells |= {NATS: units.positions.nats.tolist(), TOKENS: units.positions.tokens.tolist()}
    types = arrow_schema([columns[name] for name in cells])
    return {k: pa.array(v, types.field(k).type, from_pandas=True) for k, v in cells.items()}


def _strata(units: Units) -> Iterator[str]:
    for unit in units.ids:
        yield json.dumps({by: of[unit] for by, of in units.groupings.items() if unit in of})


def read_units(tier: Tier, path: Path, length: int) -> dict[str | None, Units]:
    """Read a tier's units by item, in the order of the file.

    Args:
        length: Tokens of a block.

    Raises:
        ResultsError: The file is missing or damaged, or holds what cannot have been measured.
    """
    listed = {column.name: column for column in unit_columns(tier)}
    variants = f"{tier.headline}_"
    table = read_table(path, [*listed.values()], COLLECT_AGAIN, variants)
    others = [_number(name) for name in table.column_names if name not in listed]
    table = with_columns(table, [*listed.values(), *others])
    encoded = table["item"].combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = [*encoded.dictionary.to_pylist(), None]
    return {
        names[code]: _item_units(tier, table.filter(codes == code), names[code], path, length)
        for code in dict.fromkeys(codes.tolist())
    }


def _item_units(tier: Tier, rows: "pa.Table", name: str | None, path: Path, length: int) -> Units:
    ids = rows["unit"].to_pylist()
    if len({*ids}) < len(ids):
        raise unusable(path, f"a unit of {name!r} appears twice")
    columns = {
        column: rows[column].to_numpy().astype(np.float64)
        for column in rows.column_names
        if column not in _NO_NUMBERS and not (column in tier.summed and rows[column].null_count)
    }
    sources = tuple(tuple(rows[column].to_pylist()) for column in SOURCES)
    groups = _names(rows, "cluster"), _names(rows, "stratum")
    layout = _layout(len(ids), *groups, sources, tier.kind == "nats")
    groupings = _groupings(ids, rows["strata"].to_pylist(), path)
    positions = _positions(rows, path, name, length) if tier.kind == "nats" else None
    units = units_of(tier, ids, layout, columns, positions=positions, groupings=groupings)
    if wrong := _wrong(tier, units):
        raise unusable(path, wrong.format(repr(name)))
    return units


_NO_NUMBERS = {column.name for column in (*_ABOUT, *_POSITIONS)}


@lru_cache(maxsize=512)
def _layout(
    size: int,
    clusters: tuple[str, ...] | None,
    strata: tuple[str, ...] | None,
    sources: tuple[tuple[str | None, ...], ...],
    is_text: bool,
) -> Layout:
    """Return one layout for all checkpoints with the same units, whose groups are numbered once."""
    return Layout(size, clusters, strata, sources, is_text=is_text)


def _names(rows: "pa.Table", column: str) -> tuple[str, ...] | None:
    return None if rows[column].null_count else tuple(rows[column].to_pylist())


def _groupings(
    ids: Sequence[str], strata: Sequence[str | None], path: Path
) -> dict[str, dict[str, str]]:
    groupings: dict[str, dict[str, str]] = {}
    for unit, text in zip(ids, strata, strict=True):
        try:
            groups = {} if text is None else {by: str(of) for by, of in json.loads(text).items()}
        except (ValueError, AttributeError):
            raise unusable(path, f"the column 'strata' has {text!r}") from None
        for by, group in groups.items():
            groupings.setdefault(by, {})[unit] = group
    return groupings


_OTHER_POSITIONS = "the losses or tokens of {} by position are not those of its blocks"


def _positions(rows: "pa.Table", path: Path, name: str | None, length: int) -> Positions | None:
    """Return nats and tokens by position; raise ResultsError where the length gives other bins."""
    import pyarrow.compute as pc

    sizes = {
        n for key in (NATS, TOKENS) for n in pc.list_value_length(rows[key]).unique().to_pylist()
    }
    if sizes <= {None}:
        return None
    if sizes != {len(bin_starts(length))}:
        raise unusable(path, _OTHER_POSITIONS.format(repr(name)))
    return positions_of(rows)


def _wrong(tier: Tier, units: Units) -> str | None:
    """Return what cannot have been measured, with a place for the item's name; None if nothing."""
    if tier.kind == "credit":
        rates = [r.amounts for m, r in units.measured.items() if m.startswith(tier.headline)]
        is_odd = any(((rate < 0) | (rate > 1)).any() for rate in rates)
        return "a mean score of {} is not in [0, 1]" if is_odd else None
    head, weights = (
        units.measured.get(tier.headline),
        [units.sums.get(m.denominator) for m in tier.metrics],
    )
    if head is None or head.weights is None or any(w is not None and w.min() < 0 for w in weights):
        return "{} has no scored token, or less than none"
    if not 0 <= head.amounts.sum() <= LARGEST * head.weights.sum():
        return "the losses of {} give no perplexity"
    bins = units.positions
    if bins is None:
        return None
    is_near = np.allclose(bins.nats.sum(axis=1), head.amounts, rtol=1e-6, atol=1e-9)
    if is_near and bins.tokens.min() >= 0 and (bins.tokens.sum(axis=1) == head.weights).all():
        return None
    return _OTHER_POSITIONS
