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
from evaluation.metrics.layout import Layout
from evaluation.metrics.ratios import Ratio
from evaluation.results.files import COLLECT_AGAIN, as_model, unusable
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
    units = read_units(tier, path, file.sequence_length) if path.exists() else {}
    results = TierResults(tier=tier, path=folder / tier.summary_file, file=file, items={})
    if tier.rates:
        overall = _item(results, "summary", units.get(None, _NONE))
        same = {"prompts": file.data_checksum}
        results = replace(results, items=_categories(results, units), overall=overall, same=same)
    else:
        lost = [one for one in _section(results, tier.section) if units and one not in units]
        if lost:
            raise unusable(path, f"no rows of {lost[0]!r}")
        names = _section(results, tier.section)
        items = {one: _item(results, f"{tier.section}.{one}", units.get(one)) for one in names}
        results = replace(results, items=items)
    if not file.is_external:
        whole = {} if results.overall is None else {"overall": results.overall}
        for one, item in {**results.items, **whole}.items():
            _check_headline(tier, one, item, path)
    return results


_NONE = Units(ids=(), layout=Layout(0), measured={})


def _section(results: TierResults, key: str) -> dict[str, Any]:
    """Return an object of a tier's file, which must not be empty."""
    section = (results.file.model_extra or {}).get(key)
    if not isinstance(section, dict) or not section:
        what = "missing" if section is None else f"{section!r:.60}: it needs items"
        raise unusable(results.path, f"{key} is {what}")
    return section


def _item(results: TierResults, at: str, units: Units | None, *, is_whole: bool = True) -> Item:
    """Return the item at a place in a tier's file; a whole one has its headline."""
    section, _, name = at.partition(".")
    content = _section(results, section)
    entry = as_model(results.path, content[name] if name else content, ItemEntry, COLLECT_AGAIN, at)
    try:
        values = entry.values(results.tier)
    except ValueError as error:
        raise unusable(results.path, f"{at}: {error}") from None
    if is_whole and not values:
        head = results.tier.metric(results.tier.metrics_by(entry.kind)[0])
        raise unusable(results.path, f"{at}.{head.key} is missing")
    same = entry.same(results.tier)
    return Item(group=entry.group, values=values, same=same, entry=entry, units=units)


def _categories(results: TierResults, units: ByItem) -> dict[str, Item]:
    """Return the categories of a tier of rates, of which the headline alone is compared."""
    key, headline = "by_category", results.tier.headline
    names = _section(results, key) if (results.file.model_extra or {}).get(key) else ()
    items = {
        name: _item(results, f"{key}.{name}", units.get(name, _NONE), is_whole=False)
        for name in names
    }
    return {
        name: replace(item, group=name, values={headline: item.values[headline]}, same={})
        for name, item in items.items()
        if item.values
    }


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
