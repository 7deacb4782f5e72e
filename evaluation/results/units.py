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
from evaluation.metrics.positions import NATS, TOKENS, Positions, bin_starts, positions_of
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

    def count(self, metric: str) -> int:
        """Return the number of units that were judged by a metric."""
        return int(self.measured[metric].is_judged.sum()) if metric in self.measured else 0


ByItem = Mapping[str | None, Units]
"""Units by their item; None for all units of a tier of rates together."""


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


def read_units(tier: Tier, path: Path, length: int) -> dict[str | None, Units]:
    """Read a tier's units by item, in the order of the file.

    Args:
        length: Tokens of a block.

    Raises:
        ResultsError: The file is missing or damaged, or holds what cannot have been measured.
    """
    table = read_table(path, _columns(tier), COLLECT_AGAIN, f"{tier.headline}_")
    encoded = table["item"].combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = [*encoded.dictionary.to_pylist(), None]
    return {
        names[code]: _item_units(tier, table.filter(codes == code), names[code], path, length)
        for code in dict.fromkeys(codes.tolist())
    }


def _item_units(tier: Tier, rows: pa.Table, name: str | None, path: Path, length: int) -> Units:
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
    whole = (None if None in about[key] else about[key] for key in ("cluster", "stratum"))
    clusters, strata = whole
    sources = [about[column] for column in SOURCES]
    layout = Layout(len(ids), clusters, strata, sources, is_text=tier.kind == "nats")
    groupings = _groupings(ids, about["strata"], path)
    positions = positions_of(rows)
    units = units_of(tier, ids, layout, columns, positions=positions, groupings=groupings)
    if wrong := _wrong(tier, units, length):
        raise unusable(path, f"{wrong} of {name!r}")
    return units


def _groupings(
    ids: Sequence[str], strata: Sequence[str | None], path: Path
) -> dict[str, dict[str, str]]:
    groupings: dict[str, dict[str, str]] = {}
    stated = ((unit, text) for unit, text in zip(ids, strata, strict=True) if text is not None)
    for unit, text in stated:
        try:
            groups = {by: str(of) for by, of in json.loads(text).items()}
        except (ValueError, AttributeError):
            raise unusable(path, f"the column 'strata' has {text!r}") from None
        for by, group in groups.items():
            groupings.setdefault(by, {})[unit] = group
    return groupings


def _wrong(tier: Tier, units: Units, length: int) -> str | None:
    """Return what cannot have been measured; None if nothing."""
    if tier.kind == "credit":
        rates = [r.amounts for m, r in units.measured.items() if m.startswith(tier.headline)]
        is_odd = any(((rate < 0) | (rate > 1)).any() for rate in rates)
        return "a mean score that is not in [0, 1]" if is_odd else None
    head = units.measured.get(tier.headline)
    if head is None or head.weights is None or any(units.sums[n].min() < 0 for n in units.sums):
        return "no scored token, or a count or loss below zero"
    if not head.amounts.sum() >= 0:
        return "losses that give no perplexity"
    bins = units.positions
    if bins is None:
        return None
    if bins.nats.shape[1] != len(bin_starts(length)) or bins.tokens.min() < 0:
        return "other bins of positions than those"
    is_near = np.allclose(bins.nats.sum(axis=1), head.amounts, rtol=1e-6, atol=1e-9)
    if is_near and (bins.tokens.sum(axis=1) == head.weights).all():
        return None
    return "losses or tokens by position that are not those of the blocks"
