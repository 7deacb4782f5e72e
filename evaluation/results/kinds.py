"""A tier's items as everything after collection reads them: what was measured on each of their units.

Slices, tasks and categories of prompts have one shape: a table of units (blocks, questions, prompts) with a
numerator and a denominator for each metric, and how the units depend on one another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.positions import Positions
from evaluation.metrics.ratios import Ratio, ratio_of
from evaluation.metrics.variance import Floats
from evaluation.results.files import FileModel
from evaluation.settings.tiers import Tier


@dataclass(frozen=True, kw_only=True)
class Units:
    """The blocks, questions or prompts of an item, in the file's order: (n,) of everything.

    `measured` has what each metric adds up and divides by; amounts are NaN for units without a verdict,
    or do not count for the metric. `sums` are the columns that
    ratios of blocks are made of, and `positions` their nats by position, where the scorer stored them.
    `groupings` are fixed groups to report by, such as level and subject: the group of each unit, by grouping.
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


def units_of(
    tier: Tier, ids: Sequence[str], layout: Layout, columns: Mapping[str, Floats], **more: Any
) -> Units:
    """Return units with the metrics that their columns give.

    A metric is the ratio of two columns that the tier names, or else a mean of the column of its own name, in
    which NaN marks units that do not count. Any other column is a variant of the headline, such as another
    verifier's pass rate.
    """
    sums = {name: columns[name] for name in tier.summed if name in columns}
    means = {name: column for name, column in columns.items() if name not in sums}
    measured: dict[str, Ratio] = {}
    for metric in tier.metrics:
        ratio = ratio_of(metric, sums) if metric.numerator else _mean(means.pop(metric.name, None))
        if ratio is not None:
            measured[metric.name] = ratio
        if metric.name == tier.headline:
            others = {
                name: column for name, column in means.items() if name.startswith(f"{metric.name}_")
            }
            measured |= {
                name: Ratio(column) for name, column in others.items() if _is_given(column)
            }
    return Units(ids=ids, layout=layout, measured=measured, sums=sums, **more)


def _mean(amounts: Floats | None) -> Ratio | None:
    return None if amounts is None or not _is_given(amounts) else Ratio(amounts)


def _is_given(amounts: Floats) -> bool:
    return bool(np.isfinite(amounts).any())


@dataclass(frozen=True, kw_only=True)
class Item:
    """A slice, task or category: `values` by metric, and what must be the `same` on both sides.

    `entry` is the item's part of the file. `units` is None where an external program wrote none. `chance` is
    the value of random choice. `size` is the number of units that the file states. `bounds` are the file's
    95 % intervals, by metric.
    """

    group: str | None
    values: Mapping[str, float]
    same: Mapping[str, Any]
    entry: FileModel
    units: Units | None = field(default=None, repr=False)
    chance: float | None = None
    size: int | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def measured(self) -> Mapping[str, Ratio]:
        """What each metric adds up and divides by; none without units."""
        return {} if self.units is None else self.units.measured

    @property
    def groupings(self) -> Mapping[str, Mapping[str, str]]:
        """The fixed groups of its units, by grouping; none without units."""
        return {} if self.units is None else self.units.groupings

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the metrics that both files give."""
        return frozenset([*self.values, *self.measured])

    @property
    def light(self) -> "Item":
        """The item without its units, of which there may be many."""
        return replace(self, units=None)


@dataclass(frozen=True, kw_only=True)
class Items:
    """A tier's items by name; `overall` is of all units of a tier of rates."""

    items: Mapping[str, Item]
    overall: Item | None = None
    same: Mapping[str, Any] = field(default_factory=dict)
