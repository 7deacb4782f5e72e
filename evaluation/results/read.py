"""The tier files of one checkpoint, read and checked: each item with its values and its units.

Results of an external command may lack units; those of the engine may not.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from evaluation.errors import ResultsError
from evaluation.metrics.ratios import Ratio
from evaluation.results.files import COLLECT_AGAIN, unusable
from evaluation.results.tier_files import ItemEntry, TierFile, read_tier_file, tiers_in
from evaluation.results.units import ByItem, Units, read_units
from evaluation.settings.tiers import TIERS, Tier, TierName

CACHED = 16
"""Tiers of checkpoints that are kept in memory: those of a step and of its bridge, twice."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A slice, task or category: `values` by metric, and what must be the `same` on both sides.

    `units` is None where an external program wrote none.
    """

    group: str | None
    values: Mapping[str, float]
    same: Mapping[str, Any]
    entry: ItemEntry
    units: Units | None = field(default=None, repr=False)

    @property
    def measured(self) -> Mapping[str, Ratio]:
        """What each metric adds up and divides by; none without units."""
        return {} if self.units is None else self.units.measured

    @property
    def groupings(self) -> Mapping[str, Mapping[str, str]]:
        """The fixed groups of its units, by grouping; none without units."""
        if self.units is None or self.units.groupings or self.units.layout.strata is None:
            return {} if self.units is None else self.units.groupings
        return {"stratum": dict(zip(self.units.ids, self.units.layout.strata, strict=True))}


@dataclass(frozen=True, kw_only=True)
class TierResults:
    """A tier of one checkpoint; only a tier of rates has `overall`, of all units."""

    tier: Tier
    path: Path
    file: TierFile = field(repr=False)
    items: Mapping[str, Item]
    overall: Item | None = None
    same: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Folder of the checkpoint's results."""
        return self.path.parent


@dataclass(frozen=True, kw_only=True)
class Results:
    """The requested tiers of one checkpoint."""

    folder: Path
    tiers: Mapping[TierName, TierResults]

    @property
    def header(self) -> TierFile:
        """The keys that all tier files begin with, from the first file."""
        return next(iter(self.tiers.values())).file

    @property
    def label(self) -> str:
        """Name in tables: its path's last two folders (`stage1/50000`)."""
        return "/".join(Path(self.header.checkpoint).parts[-2:])


def read_results(folder: Path, tiers: Iterable[TierName]) -> Results:
    """Read tiers of a checkpoint's results, in this order; raise ResultsError, which names file and key."""
    by_tier = {name: read_tier(folder, name) for name in tiers}
    if not by_tier:
        such_as = "name a folder such as by_checkpoint/step_1000"
        raise ResultsError(f"{folder}: no tier files; {such_as}, or {COLLECT_AGAIN}")
    return Results(folder=folder, tiers=by_tier)


def read_folder(folder: Path) -> Results:
    """Read all tiers that have a file in a folder of a checkpoint's results; raise ResultsError."""
    return read_results(folder, tiers_in(folder))


def read_tier(folder: Path, name: TierName) -> TierResults:
    """Read one tier of a checkpoint's results; the same object while its files are the same.

    Raises:
        ResultsError: A file is missing or invalid, or two contradict each other; names file and key.
    """
    paths = (folder / TIERS[name].summary_file, folder / TIERS[name].units_file)
    states = [path.stat() for path in paths if path.exists()]
    return _read(folder, name, tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in states))


@lru_cache(CACHED)
def _read(folder: Path, name: TierName, state: object) -> TierResults:
    del state  # of other bytes another entry of the cache
    tier, file = TIERS[name], read_tier_file(folder, name)
    path = folder / tier.units_file
    units = read_units(tier, path) if path.exists() else {}
    summary = folder / tier.summary_file
    overall, same = None, {}
    if tier.rates:
        overall = _item(tier, summary, "summary", file.summary or ItemEntry(), units.get(None))
        items, same = _categories(tier, summary, file, units), {"prompts": file.data_checksum}
    else:
        entries: Mapping[str, ItemEntry] = getattr(file, tier.section)
        if not entries:
            raise unusable(summary, f"{tier.section} is {{}}: it needs items")
        if lost := [one for one in entries if units and one not in units]:
            raise unusable(path, f"no rows of {lost[0]!r}")
        items = {
            one: _item(tier, summary, f"{tier.section}.{one}", entry, units.get(one))
            for one, entry in entries.items()
        }
    if not file.is_external:
        for one, item in {**items, **({} if overall is None else {"overall": overall})}.items():
            _check_headline(tier, one, item, path)
    return TierResults(tier=tier, path=summary, file=file, items=items, overall=overall, same=same)


def _item(tier: Tier, path: Path, at: str, entry: ItemEntry, units: Units | None) -> Item:
    """Return the item at a place in a tier's file, which has its headline."""
    try:
        values = entry.values(tier)
    except ValueError as error:
        raise unusable(path, f"{at}: {error}") from None
    if not values:
        head = tier.metric(tier.metrics_by(entry.kind)[0])
        raise unusable(path, f"{at}.{head.key} is missing")
    same = entry.same(tier)
    return Item(group=entry.group, values=values, same=same, entry=entry, units=units)


def _categories(tier: Tier, path: Path, file: TierFile, units: ByItem) -> dict[str, Item]:
    """Return the categories of a tier of rates, of which the headline alone is compared, if it counts."""
    items: dict[str, Item] = {}
    for name, entry in (file.by_category or {}).items():
        if (entry.model_extra or {}).get(tier.head.key) is not None:
            item = _item(tier, path, f"by_category.{name}", entry, units.get(name))
            values = {tier.headline: item.values[tier.headline]}
            items[name] = replace(item, group=name, values=values, same={})
    return items


def _check_headline(tier: Tier, name: str, item: Item, path: Path) -> None:
    """Raise ResultsError where units do not give the headline of the summary.

    A page shows numbers of both files, so it would contradict itself if one of them was changed by hand
    or copied without the other.
    """
    headline = tier.headline_of(item.values)
    if headline not in item.measured:
        raise unusable(path, f"{name!r} has no {tier.metric(headline).words}")
    mean, stated = item.measured[headline].value, item.values[headline]
    if not math.isclose(mean, stated, rel_tol=1e-6, abs_tol=1e-9):
        raise ResultsError(
            f"{path}: the rows of {name!r} give a mean of {mean:.7g}, and {tier.summary_file} says "
            f"{stated:.7g}; the two are not of one scoring: {COLLECT_AGAIN}"
        )
