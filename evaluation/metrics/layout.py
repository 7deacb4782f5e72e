"""How the units of an item depend on one another, and on units of other items.

cluster    groups that were sampled, e.g. the passages that questions are about; of one name in several
           strata, it is one cluster
stratum    groups of a fixed list, e.g. MMLU's subjects
source     the row of the data that a unit asks. One row may be asked several times: in one task at
           several lengths, or in several tasks of one suite (GSM8K with 0, 4 and 8 solved examples).
           Its units vary together, so they are one cluster, within a task and across tasks
text       blocks in the order of the text, whose neighbours may hold parts of one document
"""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
"""A number for the group of each unit, (units,)."""

Names = Sequence[str] | None

Identities = Sequence[Sequence[str | None]]
"""Several columns of a name for each unit; units that share a name in a column ask the same source row."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The groups that the units of one item belong to; None where there are none."""

    size: int
    clusters: Names = None
    strata: Names = None
    sources: Identities = ()
    _: KW_ONLY
    is_text: bool = False

    @cached_property
    def names(self) -> frozenset[str]:
        """All names of source rows."""
        return frozenset(name for column in self.sources for name in column if name is not None)

    @cached_property
    def groups(self) -> Labels | None:
        """The dependent group of each unit: its cluster, joined with others that ask the same source row."""
        columns: list[Sequence[object]] = [] if self.clusters is None else [self.clusters]
        repeated = [column for column in self.sources if _has_repeats(column)]
        return joined(self.size, [*columns, *repeated]) if columns or repeated else None

    @cached_property
    def stratum(self) -> Labels | None:
        """The stratum of each unit."""
        return None if self.strata is None else numbered(self.strata)

    def only(self, chosen: NDArray[np.bool_]) -> "Layout":
        """Return the layout of the chosen units."""
        if chosen.all():
            return self

        def left(names: Names) -> Names:
            return names and list(compress(names, chosen))

        sources = [list(compress(column, chosen)) for column in self.sources]
        groups = left(self.clusters), left(self.strata), sources
        return Layout(int(chosen.sum()), *groups, is_text=self.is_text)


def _has_repeats(names: Sequence[str | None]) -> bool:
    known = [name for name in names if name is not None]
    return len({*known}) < len(known)


def numbered(names: Sequence[str]) -> Labels:
    """Return a number for each name, equal for equal names."""
    return np.unique(np.asarray(names), return_inverse=True)[1].astype(np.int64)


def joined(size: int, columns: Sequence[Sequence[object]]) -> Labels:
    """Return a number for the group of each unit, where units that share a name in any column are one group.

    Args:
        columns: Names of all units, by column; None is shared with no other unit.
    """
    groups = _Groups()
    for unit, names in enumerate(zip(*columns, strict=True)):
        groups.join([(-1, unit), *((place, n) for place, n in enumerate(names) if n is not None)])
    number: dict[object, int] = {}
    found = [number.setdefault(groups.root((-1, unit)), len(number)) for unit in range(size)]
    return np.array(found, dtype=np.int64)


class _Groups:
    """Labels joined into groups (union-find)."""

    def __init__(self) -> None:
        self._above: dict[object, object] = {}

    def root(self, label: object) -> object:
        """Return the label that stands for the group of a label."""
        while (above := self._above.setdefault(label, label)) != label:
            self._above[label] = label = self._above[above]
        return label

    def join(self, labels: Iterable[object]) -> None:
        """Join the groups of several labels."""
        first, *others = (self.root(label) for label in labels)
        for other in others:
            self._above[self.root(other)] = first


@lru_cache(maxsize=64)
def shared_groups(layouts: tuple[Layout, ...]) -> tuple[Labels, ...] | None:
    """Return the dependent groups of several items' units, numbered across items; None if none is shared."""
    if sum(len(layout.names) for layout in layouts) == len(
        frozenset().union(*(o.names for o in layouts))
    ):
        return None
    depth = max(len(layout.sources) for layout in layouts)
    columns: list[list[object]] = [[] for _ in range(depth + 1)]
    for number, layout in enumerate(layouts):
        for place in range(depth):
            column = layout.sources[place] if place < len(layout.sources) else [None] * layout.size
            columns[place] += column
        clusters = layout.clusters
        columns[-1] += [None] * layout.size if clusters is None else [(number, n) for n in clusters]
    labels = joined(sum(layout.size for layout in layouts), columns)
    ends = np.cumsum([layout.size for layout in layouts])[:-1]
    return tuple(np.split(labels, ends))
