"""A tier's items as the bridge compares them: slices with losses, or tasks with credits.

NatsItem     nats of blocks of text, with their tokens and bytes
CreditItem   credit in [0, 1] of questions or prompts, by metric
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Identities, Layout, Names
from evaluation.metrics.positions import Positions
from evaluation.metrics.ratios import Ratio, ratio_of
from evaluation.metrics.variance import Floats
from evaluation.results.columns import Column
from evaluation.results.files import FileModel
from evaluation.results.tier_files import TierFile
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import Tier

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Nats, tokens and bytes of blocks of text, (n,) each, in the text's order.

    `more` are other sums by column, (n,) each, which scores of earlier versions lack.
    `positions` is None where the scorer stored none. `data` identifies the text, which two slices may share.
    """

    ids: NDArray[np.int64]
    nats: Floats
    tokens: Floats
    bytes: Floats
    positions: Positions | None = None
    data: str | None = None
    more: Mapping[str, Floats] = field(default_factory=dict)

    def ratio(self, metric: Metric) -> Ratio | None:
        """Return the ratio of sums that a metric is, or follows from; None where it is unknown."""
        known = {"nats": self.nats, "tokens": self.tokens, "bytes": self.bytes, **self.more}
        return ratio_of(metric, known)

    @cached_property
    def layout(self) -> Layout:
        """How the blocks depend on one another and on those of other slices."""
        rows = [] if self.data is None else [[f"{self.data} {block}" for block in self.ids]]
        return Layout(len(self.ids), sources=rows, is_text=True)


@dataclass(frozen=True, kw_only=True)
class Units:
    """Questions or prompts.

    `clusters` are sampled groups, such as questions on one text; `strata` are groups fixed by design;
    `sources` are names of the rows of data that they ask, in several columns (`metrics.layout`).
    """

    ids: tuple[str, ...]
    clusters: Names = None
    strata: Names = None
    sources: Identities = ()

    @cached_property
    def layout(self) -> Layout:
        """How the units depend on one another and on those of other items."""
        return Layout(len(self.ids), self.clusters, self.strata, self.sources)


@dataclass(frozen=True, kw_only=True)
class Credits(Units):
    """Credit in [0, 1], (n,), of the units that count for a metric.

    `excluded` units could not be judged, so the other side leaves them out, too; it holds their place
    among all units of the file, by id.
    """

    credit: Floats
    excluded: Mapping[str, int] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        """Number of the file's units, including excluded ones."""
        return len(self.ids) + len(self.excluded)

    def without(self, other: "Credits") -> "Credits":
        """Return the credits of the units that could be verified on the other side, too.

        Args:
            other: The same metric of the other side.

        Returns:
            These credits without units that the other side excludes.
        """
        if not other.excluded.keys() - self.excluded.keys():
            return self
        common = [index for index, name in enumerate(self.ids) if name not in other.excluded]
        is_common = np.zeros(len(self.ids), dtype=np.bool_)
        is_common[common] = True
        groups, own = self.layout.only(is_common), (self.ids[index] for index in common)
        excluded = {**other.excluded, **self.excluded}
        return Credits(
            ids=tuple(own),
            credit=self.credit[common],
            excluded=excluded,
            clusters=groups.clusters,
            strata=groups.strata,
            sources=groups.sources,
        )

    def only(self, names: Collection[str]) -> "Credits":
        """Return the credits of some units, treated as independent.

        Returns:
            Their credits, without clusters and strata.
        """
        chosen = [index for index, name in enumerate(self.ids) if name in names]
        return Credits(ids=tuple(self.ids[i] for i in chosen), credit=self.credit[chosen])

    def over_all(self, differences: Differences) -> Differences:
        """Return differences of these units as those of all units of the file, NaN for excluded ones."""
        if not self.excluded:
            return differences
        place = {index: name for name, index in self.excluded.items()}
        judged = [index for index in range(self.asked) if index not in place]
        amounts = np.full(self.asked, np.nan)
        amounts[judged] = differences.amounts

        def everywhere(names: Sequence[Any]) -> list[Any]:
            known = iter(names)
            return [None if index in place else next(known) for index in range(self.asked)]

        own = self.layout
        clusters, strata = (
            names
            and [
                f"excluded {i}" if name is None else name
                for i, name in enumerate(everywhere(names))
            ]
            for names in (own.clusters, own.strata)
        )
        layout = Layout(
            self.asked, clusters, strata, [everywhere(source) for source in own.sources]
        )
        return replace(differences, amounts=amounts, layout=layout)


@dataclass(frozen=True, kw_only=True)
class SecondaryMetrics(Units):
    """Real-valued measures of an item's questions, next to their credit: (n,) by metric."""

    values: Mapping[str, Floats]


@dataclass(frozen=True, kw_only=True)
class ScoredItem:
    """A slice, task or category: `values` by metric, and what must be the `same` on both sides.

    `entry` is the item's part of the file.
    """

    group: str | None
    values: Mapping[str, float]
    same: Mapping[str, Any]
    entry: FileModel

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the metrics that both files give."""
        return frozenset(self.values)


@dataclass(frozen=True, kw_only=True)
class NatsItem(ScoredItem):
    """A slice; `blocks` is None where an external program wrote none."""

    blocks: Blocks | None = field(default=None, repr=False)

    @property
    def light(self) -> "NatsItem":
        """The item without its blocks, of which there may be many."""
        return replace(self, blocks=None)


@dataclass(frozen=True, kw_only=True)
class CreditItem(ScoredItem):
    """A task or category; `credits` by metric, the tier's headline first.

    `secondary` is None where the tier has no secondary metrics, or the units are not stored. `chance`
    is the value of random choice. `size` is the number of units that the file states. `groupings` are
    fixed groups to report by, such as level and subject: the group of each unit, by grouping. `bounds`
    are the file's 95 % intervals, by metric. `rows` are the table rows of a task's candidates.
    """

    credits: Mapping[str, Credits] = field(default_factory=dict, repr=False)
    secondary: SecondaryMetrics | None = field(default=None, repr=False)
    chance: float | None = None
    size: int | None = None
    groupings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    rows: "pa.Table | None" = field(default=None, repr=False)

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the metrics that both files give."""
        return frozenset([*self.values, *(self.secondary.values if self.secondary else ())])

    @property
    def light(self) -> "CreditItem":
        """The item without its units, of which there may be many."""
        return replace(self, credits={}, secondary=None, groupings={}, rows=None)


Item = NatsItem | CreditItem


@dataclass(frozen=True, kw_only=True)
class Items:
    """A tier's items by name; `overall` is of all units of a tier of rates."""

    items: Mapping[str, Item]
    overall: CreditItem | None = None
    same: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemReader:
    """The models of a tier's two files, and the function that makes items of them.

    `per_item` holds the columns of the items file if it is Parquet, else the model of its lines.
    """

    file: type[TierFile]
    per_item: Sequence[Column] | type[FileModel]
    read: Callable[[Tier, Any, Path], Items]
