"""Where the rows of a slice or task come from: local files, a mirror, or the hub."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import Row, read_rows
from evaluation.prefill.hub import hub_rows, resolved_commit
from evaluation.prefill.mirrors import lacking_parts, local_files, mirror_files, mirror_of
from evaluation.prefill.states import Checksums, Reading, are_unchanged
from evaluation.providers.adapters.data import Status, mirrored_files, package_files, user_files
from evaluation.providers.render import ReadSource, TaskInfo
from evaluation.settings.generation import GenerationTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.sources import Slice, Source, Task

log = logging.getLogger(__name__)

MOST_LETTERS = 10**9
"""Characters of all rows of a task together; of text that is packed, no more than a few rows are kept."""


@dataclass(frozen=True)
class Origin:
    """One split, resolved: local `files`, or None where it is on the hub."""

    source: Source
    config: str | None
    split: str
    files: tuple[Path, ...] | None
    reading: Reading = field(default_factory=Reading, compare=False)

    def __str__(self) -> str:
        if self.source.dataset is None:
            return ", ".join(map(str, self.source.files))
        parts = [self.source.dataset, self.config, f"split {self.split}"]
        return " ".join(part for part in parts if part)

    def rows(self, fields: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the rows in order.

        Args:
            fields: Columns to read, where the format allows it; None: all.

        Yields:
            A row.

        Raises:
            SourceError: The data cannot be read.
        """
        if self.files is None:
            yield from hub_rows(self.source, config=self.config, split=self.split, fields=fields)
        else:
            for sentence in lacking_parts(self.files):
                log.warning("%s", sentence)
            for file in self.files:
                self.reading.begin(file)
                yield from read_rows(file, fields)
            self.reading.ended = True

    def first(self, most: int) -> tuple[list[Row], int]:
        """Return the first rows, and how many there are.

        Args:
            most: How many rows are returned at most.

        Returns:
            The rows in order, and the number of all rows of the split.

        Raises:
            SourceError: The data cannot be read, or the rows take too much memory.
        """
        rows, found, size = self.rows(), list[Row](), 0
        for row in islice(rows, most):
            size += _letters(row)
            if size > MOST_LETTERS:
                raise SourceError(
                    f"{self}: its first {len(found) + 1:,} rows have more than {MOST_LETTERS:,} characters, "
                    "and all are to be kept in memory; lower `limit`, or leave long fields out"
                )
            found.append(row)
        return found, len(found) + sum(1 for _ in rows)

    def state(self, checksums: Checksums) -> dict[str, Any]:
        """Return what shows later whether local files are still as they were read.

        Args:
            checksums: Gives the files' checksums.

        Returns:
            The part of meta.json about this split.
        """
        if self.files is None:
            return {"kind": "hub"}
        kind = "files" if self.source.dataset is None else "mirror"
        return {"kind": kind, **self.reading.state(checksums)}


class Sources:
    """All that an entry is made of: `origins`, or what a provider reads, which only it knows.

    Args:
        plan: The stage.
        origins: Splits that are read; empty for a provider's task.
        checksums: Checksums to be shared with other sources; None: those of the plan's results.
    """

    def __init__(
        self, plan: StagePlan, origins: Sequence[Origin], checksums: Checksums | None = None
    ) -> None:
        self.origins, self._mirrors = origins, plan.config.mirrors
        self._checksums = checksums or Checksums(Path(plan.config.results))

    def are_as(self, known: Any) -> bool:
        """Return whether the sources hold what they held when a description of them was stored.

        Args:
            known: What meta.json has of their state; it may be another version's.

        Returns:
            Whether nothing has changed; raises as `locate`.
        """
        try:
            now = [origin.files for origin in self.origins] or self._provided(known)
        except (TypeError, LookupError):  # stored by another version
            return False
        return are_unchanged(now, known, self._checksums)

    def describe(self) -> dict[str, Any]:
        """Return what meta.json has of the data's origin.

        Returns:
            Dataset, revision, commit (None for local files), and state of the files.

        Raises:
            SourceError: A file changed while it was read.
        """
        source = self.origins[0].source
        on_hub = any(origin.files is None for origin in self.origins)
        state = [origin.state(self._checksums) for origin in self.origins]
        self._checksums.keep()
        return {
            "dataset": source.dataset,
            "revision": source.revision,
            "resolved": resolved_commit(source) if on_hub else None,
            "state": state,
        }

    def describe_provided(self, info: TaskInfo) -> dict[str, Any]:
        """Return what meta.json has of data that a provider has read.

        Args:
            info: The provider's meta.json of the task.

        Returns:
            The same keys as `describe`.
        """
        state = [_provided_state(one, self._checksums) for one in info.read]
        self._checksums.keep()
        name = ", ".join(info.datasets)
        return {"dataset": name, "revision": None, "resolved": None, "state": state}

    def _provided(self, known: Any) -> list[Sequence[Path] | None]:
        """Return the files that a provider would read now of each source that it has read."""
        found: list[Sequence[Path] | None] = []
        for one in known or ():
            if one["kind"] == "tasks":
                found.append(user_files(Path(one["dataset"])))
            elif one["kind"] == "packages":
                found.append(package_files(Path(one["dataset"])))
            else:
                root = mirror_of(one["dataset"], self._mirrors)
                found.append(None if root is None else mirrored_files(root, one["config"]))
        return found


def _provided_state(read: ReadSource, checksums: Checksums) -> dict[str, Any]:
    about = {"dataset": read.dataset, "config": read.config}
    if read.files is None:
        return {"kind": "hub", **about}
    files = {Path(path): Status(*status) for path, status in read.files}
    kind = "mirror" if read.kind == "data" else read.kind
    return {"kind": kind, **about, **Reading(files, ended=True).state(checksums)}


def _letters(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_letters, value.values()))
    return sum(map(_letters, value)) if isinstance(value, list) else 1


def locate(
    source: Source,
    mirrors: dict[str, str],
    *,
    config: str | None = None,
    split: str | None = None,
) -> Origin:
    """Find a source's split.

    Args:
        source: The slice or task that names dataset or files.
        mirrors: Folders by dataset; `*` is a folder with a subfolder for each dataset.
        config: The dataset's configuration; None: the source's own.
        split: Name of the split; None: the source's own.

    Returns:
        The split, with its local files if it has them.

    Raises:
        SourceError: Local files are missing.
    """
    config = source.config if config is None else config
    split = source.split if split is None else split
    if source.dataset is None:
        return Origin(source, config, split, tuple(local_files(source.files)))
    root = mirror_of(source.dataset, mirrors)
    if root is None:
        return Origin(source, config, split, None)
    files = mirror_files(
        root, dataset=source.dataset, config=config, split=split, patterns=source.data_files
    )
    return Origin(source, config, split, tuple(files))


def locate_item(
    item: Slice | Task | GenerationTask | ProviderChoices | ProviderTask, mirrors: dict[str, str]
) -> tuple[list[Origin], list[Origin]]:
    """Find the rows of each configuration of an item, and its solved examples if a split has them.

    Args:
        item: The slice or task.
        mirrors: Folders by dataset; `*` is a folder with a subfolder for each dataset.

    Returns:
        A split per configuration for rows, and for examples; both empty for a provider's task,
        whose files only the provider knows.
    """
    if isinstance(item, ProviderChoices | ProviderTask):
        return [], []
    configs = (isinstance(item, Task) and item.configs) or (item.config,)
    origins = [locate(item, mirrors, config=config) for config in configs]
    is_written_out = isinstance(item, GenerationTask) and item.fewshot_examples
    if isinstance(item, Slice) or not item.num_fewshot or is_written_out:
        return origins, []
    split = item.fewshot_split
    return origins, [locate(item, mirrors, config=config, split=split) for config in configs]
