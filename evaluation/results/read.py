"""The tier files of one checkpoint, read and checked.

Results of an external command may lack the per-item files; those of the engine may not.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.errors import ResultsError, near_path
from evaluation.results.columns import read_table, rows_of
from evaluation.results.files import COLLECT_AGAIN, READ_FILES, read_model
from evaluation.results.items import models_of, read_items
from evaluation.results.kinds import Item
from evaluation.results.tier_files import TierFile
from evaluation.settings.tiers import TIERS, Tier, TierName

if TYPE_CHECKING:  # takes a while to import
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class TierResults:
    """A tier of one checkpoint; only a tier of rates has `overall`."""

    tier: Tier
    path: Path
    file: TierFile = field(repr=False)
    items: Mapping[str, Item]
    overall: Item | None
    same: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """Folder of the checkpoint's results."""
        return self.path.parent

    def details(self) -> "pa.Table | None":
        """Return the table of the items file; None if an external program wrote none; raise ResultsError."""
        path, columns = self.folder / self.tier.items_file, models_of(self.tier.name).per_item
        if (self.file.is_external and not path.exists()) or isinstance(columns, type):
            return None
        return read_table(path, columns, COLLECT_AGAIN)

    def rows_of(self, table: "pa.Table", name: str) -> "pa.Table":
        """Return an item's rows of that table; raise ResultsError if it has none."""
        return rows_of(
            table, self.tier.item, name, self.folder / self.tier.items_file, COLLECT_AGAIN
        )

    @property
    def light(self) -> "TierResults":
        """The results without blocks, questions and prompts, of which there may be many."""
        return replace(
            self,
            items={name: item.light for name, item in self.items.items()},
            overall=None if self.overall is None else self.overall.light,
        )


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


def tiers_in(folder: Path) -> tuple[TierName, ...]:
    """Return the tiers whose summary file exists."""
    return tuple(name for name, tier in TIERS.items() if (folder / tier.summary_file).exists())


def read_tier_file(folder: Path, name: TierName) -> TierFile:
    """Read a tier's summary file, and check that its items file exists, too; raise ResultsError."""
    tier = TIERS[name]
    file = read_model(folder / tier.summary_file, models_of(name).file, COLLECT_AGAIN)
    items = folder / tier.items_file
    if not file.is_external and not items.exists():
        raise ResultsError(f"{items}: no such file; {COLLECT_AGAIN}")
    if items.is_file() and not items.stat().st_size:
        raise ResultsError(f"{items}: it is empty; {COLLECT_AGAIN}")
    return file


CACHED_BYTES = 200 << 20
"""Bytes of tables of units whose content `reading_once` keeps."""


@dataclass
class _Cache:
    """Tiers that were read, and the bytes of files that may still be added."""

    tiers: dict[tuple[Path, TierName], TierResults] = field(default_factory=dict)
    left: int = CACHED_BYTES

    def add(self, tier_results: TierResults) -> None:
        """Keep a tier's results, if there is memory left for them."""
        path = tier_results.folder / tier_results.tier.units_file
        size = path.stat().st_size if path.exists() else 0
        if size <= self.left:
            self.left -= size
            self.tiers[tier_results.folder, tier_results.tier.name] = tier_results


_CACHE: ContextVar[_Cache | None] = ContextVar("cache", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Read each file only once within the block; keep tables of units up to CACHED_BYTES."""
    token, files = _CACHE.set(_Cache()), READ_FILES.set({})
    try:
        yield
    finally:
        _CACHE.reset(token)
        READ_FILES.reset(files)


def read_tier(folder: Path, name: TierName) -> TierResults:
    """Read one tier of a checkpoint's results; within `reading_once` the same object at every call.

    Raises:
        ResultsError: A file is missing or invalid; names file and key.
    """
    cache, tier = _CACHE.get(), TIERS[name]
    if cache is not None and (folder, name) in cache.tiers:
        return cache.tiers[folder, name]
    file = read_tier_file(folder, name)
    items = vars(read_items(tier, file, folder))
    tier_results = TierResults(tier=tier, path=folder / tier.summary_file, file=file, **items)
    if cache is not None:
        cache.add(tier_results)
    return tier_results


def read_folder(folder: Path) -> Results:
    """Read all tiers that have a file in a folder of a checkpoint's results.

    Raises:
        ResultsError: There is no tier file, or one is invalid.
    """
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else f"no such folder{near_path(folder, Path.is_dir)}"
        raise ResultsError(f"{folder}: {kind}; {_SUCH_AS}")
    if not (tiers := tiers_in(folder)):
        raise ResultsError(f"{folder}: no tier files; {_SUCH_AS}")
    return read_results(folder, tiers)


_SUCH_AS = "name a folder such as by_checkpoint/step_1000"


def read_results(folder: Path, tiers: Iterable[TierName]) -> Results:
    """Read tiers of a checkpoint's results, in this order.

    Raises:
        ResultsError: A tier is missing or invalid; names file and key.
    """
    by_tier = {name: read_tier(folder, name) for name in tiers}
    if not by_tier:
        raise ResultsError(f"{folder}: no tier files; {COLLECT_AGAIN}")
    return Results(folder=folder, tiers=by_tier)
