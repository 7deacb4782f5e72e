"""A tier's items as everything after collection reads them: what was measured on each of their units.

Slices, tasks and categories of prompts have one shape: a table of units (blocks, questions, prompts) with a
numerator and a denominator for each metric, and how the units depend on one another.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.metrics.layout import Layout
from evaluation.metrics.positions import Positions
from evaluation.metrics.ratios import Ratio
from evaluation.metrics.variance import Floats
from evaluation.results.columns import Column
from evaluation.results.files import FileModel
from evaluation.results.tier_files import TierFile
from evaluation.settings.tiers import Tier

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Units:
    """The blocks, questions or prompts of an item, in the file's order: (n,) of everything.

    `measured` has what each metric adds up and divides by; amounts are NaN for units that could not be judged,
    or do not count for the metric. Scores of earlier versions lack some metrics. `sums` are the columns that
    ratios of blocks are made of, and `positions` their nats by position, where the scorer stored them.
    """

    ids: Sequence[int | str]
    layout: Layout
    measured: Mapping[str, Ratio]
    sums: Mapping[str, Floats] = field(default_factory=dict)
    positions: Positions | None = None

    def count(self, metric: str) -> int:
        """Return the number of units that were judged by a metric."""
        return int(self.measured[metric].is_judged.sum()) if metric in self.measured else 0


@dataclass(frozen=True, kw_only=True)
class Item:
    """A slice, task or category: `values` by metric, and what must be the `same` on both sides.

    `entry` is the item's part of the file. `units` is None where an external program wrote none. `chance` is
    the value of random choice. `size` is the number of units that the file states. `groupings` are fixed
    groups to report by, such as level and subject: the group of each unit, by grouping. `bounds` are the
    file's 95 % intervals, by metric. `rows` are the table rows of a task's candidates.
    """

    group: str | None
    values: Mapping[str, float]
    same: Mapping[str, Any]
    entry: FileModel
    units: Units | None = field(default=None, repr=False)
    chance: float | None = None
    size: int | None = None
    groupings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    rows: "pa.Table | None" = field(default=None, repr=False)

    @property
    def measured(self) -> Mapping[str, Ratio]:
        """What each metric adds up and divides by; none without units."""
        return {} if self.units is None else self.units.measured

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the metrics that both files give."""
        return frozenset([*self.values, *self.measured])

    @property
    def light(self) -> "Item":
        """The item without its units, of which there may be many."""
        return replace(self, units=None, groupings={}, rows=None)


@dataclass(frozen=True, kw_only=True)
class Items:
    """A tier's items by name; `overall` is of all units of a tier of rates."""

    items: Mapping[str, Item]
    overall: Item | None = None
    same: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemReader:
    """The models of a tier's two files, and the function that makes items of them.

    `per_item` holds the columns of the items file if it is Parquet, else the model of its lines.
    """

    file: type[TierFile]
    per_item: Sequence[Column] | type[FileModel]
    read: Callable[[Tier, Any, Path], Items]
