"""How the units of an item depend on one another, and on units of other items.

cluster    groups that were sampled, e.g. the passages that questions are about
stratum    groups of a fixed list, e.g. MMLU's subjects
source     the row of the data that a unit asks. One row may be asked several times: in one task at
           several lengths, or in several tasks of one suite (GSM8K with 0, 4 and 8 solved examples).
           Its units vary together, so they are one group, within a task and across tasks
text       blocks in the order of the text, whose neighbours may hold parts of one document
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
"""A number for the group of each unit, (units,)."""

Names = Sequence[str] | None

Identities = Sequence[Sequence[str | None]]
"""Several columns of a name for each unit; units that share a name in a column ask the same source row."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The names of the groups that the units of one item belong to; None where there are none."""

    size: int
    clusters: Names = None
    strata: Names = None
    sources: Identities = ()
    _: KW_ONLY
    is_text: bool = False

    @cached_property
    def groups(self) -> "Grouping":
        """The groups of the item alone."""
        named = [column for column in self.sources if _has_repeats(column)]
        if self.clusters is None and self.strata is None and not named:
            return Grouping(labels=np.arange(self.size), is_text=self.is_text)
        return numbered((self,))[0]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The number of each unit's group, (units,): the same in every item, so that groups may be shared.

    `repeats` states that a group may have several units, `shared` that another item may have it, too.
    """

    labels: Labels
    strata: Labels | None = None
    is_text: bool = False
    repeats: bool = False
    shared: bool = False

    def only(self, chosen: NDArray[np.bool_]) -> "Grouping":
        """Return the groups of the chosen units."""
        strata = None if self.strata is None else self.strata[chosen]
        return replace(self, labels=self.labels[chosen], strata=strata)


def _has_repeats(names: Sequence[str | None]) -> bool:
    known = [name for name in names if name is not None]
    return len({*known}) < len(known)


@lru_cache(maxsize=32)
def numbered(layouts: tuple[Layout, ...]) -> tuple[Grouping, ...]:
    """Return the groups of several items, in which units that share any name are of one group."""
    import pandas as pd  # takes a while to import

    sizes = [layout.size for layout in layouts]
    offsets, total = np.cumsum([0, *sizes]), sum(sizes)
    labels = joined(total, [*_columns(layouts)])
    numbers = []
    counts = np.bincount(labels, minlength=1)
    for layout, start in zip(layouts, offsets, strict=False):
        own = labels[start : start + layout.size]
        inside = np.bincount(own, minlength=len(counts))
        groups = Grouping(
            labels=own,
            strata=None if layout.strata is None else pd.factorize(np.array(layout.strata))[0],
            is_text=layout.is_text,
            repeats=bool((inside > 1).any()),
            shared=bool(((inside > 0) & (counts > inside)).any()),
        )
        numbers.append(groups)
    return tuple(numbers)


def _columns(layouts: Sequence[Layout]) -> list[list[object]]:
    """Return columns of names of all units; those of clusters are an item's own."""
    depth = max((len(layout.sources) for layout in layouts), default=0)
    columns: list[list[object]] = [[] for _ in range(depth + 1)]
    for number, layout in enumerate(layouts):
        for place in range(depth):
            known = place < len(layout.sources)
            columns[place] += layout.sources[place] if known else [None] * layout.size
        clusters = layout.clusters
        names = [None] * layout.size if clusters is None else [f"{number} {n}" for n in clusters]
        columns[-1] += names
    return columns


def joined(size: int, columns: Sequence[Sequence[object]]) -> Labels:
    """Return a number for the group of each unit: the connected components of units and names."""
    import pandas as pd
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, nodes, used = [], [], size
    for column in columns:
        codes, names = pd.factorize(np.array(column, dtype=object))
        rows.append(np.flatnonzero(codes >= 0))
        nodes.append(codes[codes >= 0] + used)
        used += len(names)
    ends = np.concatenate([*rows, []]).astype(int), np.concatenate([*nodes, []]).astype(int)
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(used, used))
    labels = connected_components(graph, directed=False)[1][:size]
    numbers: Labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbers
