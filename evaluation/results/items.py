"""A tier's items: what its summary file states about each, with the units that its table of units holds.

A tier that is added to `settings.tiers` must register the models of its files here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import ResultsError
from evaluation.metrics.layout import Layout
from evaluation.results.columns import BLOCKS, MEASURED, Column
from evaluation.results.files import COLLECT_AGAIN, FileModel, unusable
from evaluation.results.kinds import Item, Items, Units
from evaluation.results.probe_files import Generation, Tier4File
from evaluation.results.tier_files import ItemEntry, Tier2File, Tier3File, TierFile
from evaluation.results.units_file import ByItem, read_units, unit_columns
from evaluation.results.verified_files import Tier5File
from evaluation.settings.tiers import TIERS, Tier


@dataclass(frozen=True)
class TierModels:
    """The model of a tier's summary, and that of its items file: columns of Parquet, or that of its lines."""

    file: type[TierFile]
    per_item: Sequence[Column] | type[FileModel]


TIER_MODELS: dict[str, TierModels] = {
    "tier2": TierModels(Tier2File, BLOCKS),
    "tier3": TierModels(Tier3File, MEASURED),
    "tier4": TierModels(Tier4File, Generation),
    "tier5": TierModels(Tier5File, unit_columns(TIERS["tier5"])),
}


def models_of(name: str) -> TierModels:
    """Return the models of a tier's files, which must be registered; raise ResultsError."""
    if name not in TIER_MODELS:
        raise ResultsError(
            f"{name}: nothing reads its {TIERS[name].summary_file}; register the models of its files in "
            "evaluation/results/items.py, TIER_MODELS"
        )
    return TIER_MODELS[name]


def read_items(tier: Tier, file: TierFile, folder: Path) -> Items:
    """Return a tier's items with their units.

    Raises:
        ResultsError: The table of units is missing or damaged, or contradicts the summary file.
    """
    path = folder / tier.units_file
    has_units = not file.is_external or path.exists() or (folder / tier.items_file).exists()
    units = read_units(tier, path, file.sequence_length) if has_units else {}
    if tier.rates:
        items = _categories(tier, file, units)
    else:
        entries: Mapping[str, ItemEntry] = getattr(file, tier.section)
        if lost := next((name for name in entries if has_units and name not in units), None):
            raise unusable(path, f"no rows of {lost!r}")
        items = Items(
            items={name: _item(file, one, units.get(name)) for name, one in entries.items()}
        )
    if not file.is_external:
        _check_headlines(tier, items, path)
    return items


def _item(file: TierFile, entry: ItemEntry, units: Units | None) -> Item:
    same = dict(entry.same)
    return Item(
        group=entry.group,
        values=entry.values,
        same=same | {key: value for key, value in file.same.items() if same.get(key) is None},
        entry=entry,
        units=units,
        chance=getattr(entry, "chance", None),
        bounds=entry.bounds,
    )


_NONE = Units(ids=(), layout=Layout(0), measured={})


def _categories(tier: Tier, file: Any, units: ByItem) -> Items:
    """Return the categories of a tier of rates, and the rates over all its units."""
    values = {rate: value for rate, value in file.summary.rates.items() if value is not None}
    all_units = units.get(None, _NONE)
    overall = Item(group=None, values=values, same={}, entry=file.summary, units=all_units)
    by_category, items = file.by_category or {}, {}
    for name in dict.fromkeys([*by_category, *filter(None, units)]):
        entry, own = by_category.get(name), units.get(name, _NONE)
        value = entry.rates.get(tier.headline) if entry else None
        if value is None and own.measured:
            value = own.measured[tier.headline].value
        if value is not None:
            items[name] = Item(
                group=name,
                values={tier.headline: value},
                same={},
                entry=entry or file.summary,
                units=own,
                size=entry.prompts if entry else None,
            )
    return Items(items=items, overall=overall, same=file.same)


def _check_headlines(tier: Tier, content: Items, path: Path) -> None:
    """Raise ResultsError where units do not give the headline of the summary.

    A page shows numbers of both files, so it would contradict itself if one of them was changed by hand
    or copied without the other.
    """
    items = {**content.items, **({} if content.overall is None else {"overall": content.overall})}
    for name, item in items.items():
        headline = tier.headline_of(item.values)
        if headline not in item.measured:
            raise unusable(path, f"{name!r} has no {tier.metric(headline).words}")
        mean, stated = item.measured[headline].value, item.values[headline]
        if not math.isclose(mean, stated, rel_tol=1e-6, abs_tol=1e-9):
            raise ResultsError(
                f"{path}: the rows of {name!r} give a mean of {mean:.7g}, and {tier.summary_file} says "
                f"{stated:.7g}; the two are not of one scoring: {COLLECT_AGAIN}"
            )
