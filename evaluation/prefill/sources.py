"""Sources of the rows of a slice or task: local files, a mirror, or the hub.

Rows on the hub are streamed or downloaded, without loading scripts or remote code.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError, one_line, with_class
from evaluation.prefill.files import DatasetRow, read_rows, unreadable
from evaluation.prefill.mirrors import local_files, mirror_files, mirror_of, warn_of_missing_parts
from evaluation.providers.adapters.mirror_files import FileStamp, parts_of, status_of
from evaluation.settings.config import Config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.sources import Slice, Source, Task

log = logging.getLogger(__name__)


@dataclass
class FilesRead:
    """The files that were read from a source, with their status before; `ended`: all were read."""

    files: dict[Path, FileStamp] = field(default_factory=dict)
    ended: bool = False

    def begin(self, path: Path) -> None:
        """Note a file, or a folder of `save_to_disk`, before it is read.

        Raises:
            SourceError: It cannot be read.
        """
        try:
            for part in parts_of(path):
                self.files.setdefault(part, status_of(part))
        except OSError as error:
            raise unreadable(path, error) from None


@dataclass(frozen=True)
class ResolvedSplit:
    """One split, resolved: local `files`, or None where it is on the hub."""

    source: Source
    config: str | None
    split: str
    files: tuple[Path, ...] | None
    reading: FilesRead = field(default_factory=FilesRead, compare=False)

    def __str__(self) -> str:
        if self.source.dataset is None:
            return ", ".join(map(str, self.source.files))
        parts = [self.source.dataset, self.config, f"split {self.split}"]
        return " ".join(part for part in parts if part)

    def rows(self, fields: Sequence[str] | None = None) -> Iterator[DatasetRow]:
        """Yield the rows in order.

        Args:
            fields: Columns to read, where the format allows it; None: all.

        Raises:
            SourceError: The data cannot be read.
        """
        if self.files is None:
            yield from _hub_rows(self.source, self.config, self.split, fields)
        else:
            warn_of_missing_parts(self.files)
            for file in self.files:
                self.reading.begin(file)
                yield from read_rows(file, fields)
            self.reading.ended = True

    def first(self, most: int) -> tuple[list[DatasetRow], int]:
        """Return the first rows, at most `most`, and the number of all rows of the split.

        Raises:
            SourceError: The data cannot be read.
        """
        rows = self.rows()
        first_rows = list(islice(rows, most))
        return first_rows, len(first_rows) + sum(1 for _ in rows)


def locate(
    source: Source,
    mirrors: dict[str, str],
    *,
    config: str | None = None,
    split: str | None = None,
    folders: Sequence[str] = (),
) -> ResolvedSplit:
    """Find a source's split, with its local files if it has them.

    Args:
        config: The dataset's configuration; None: the source's own.
        split: Name of the split; None: the source's own.
        folders: Folders to look for local files in, before the working folder.

    Raises:
        SourceError: Local files are missing.
    """
    config = source.config if config is None else config
    split = source.split if split is None else split
    if source.dataset is None:
        return ResolvedSplit(source, config, split, tuple(local_files(source.files, folders)))
    root = mirror_of(source.dataset, mirrors)
    if root is None:
        return ResolvedSplit(source, config, split, None)
    files = mirror_files(
        root, dataset=source.dataset, config=config, split=split, patterns=source.data_files
    )
    return ResolvedSplit(source, config, split, tuple(files))


def locate_item(
    item: Slice | Task | GenerationTask | ProviderChoices | ProviderTask, settings: Config
) -> tuple[list[ResolvedSplit], list[ResolvedSplit]]:
    """Find the rows of each configuration of an item, and its solved examples if a split has them.

    Both are empty for a provider's task, whose files the provider itself finds.
    """
    if isinstance(item, ProviderChoices | ProviderTask):
        return [], []
    configs = (isinstance(item, Task) and item.configs) or (item.config,)
    find = partial(locate, item, settings.mirrors, folders=settings.folders)
    origins = [find(config=config) for config in configs]
    is_written_out = isinstance(item, GenerationTask) and item.fewshot_examples
    if isinstance(item, Slice) or not item.num_fewshot or is_written_out:
        return origins, []
    split = item.fewshot_split
    return origins, [find(config=config, split=split) for config in configs]


def _hub_rows(
    source: Source, config: str | None, split: str, fields: Sequence[str] | None
) -> Iterator[DatasetRow]:
    """Yield rows of a split; stream them if configured, else, or if streaming fails, download them."""
    try:
        rows: Iterable[DatasetRow] | None = None
        if source.streaming:
            try:
                stream = iter(_load(source, config, split, fields, streaming=True))
                rows = chain(list(islice(stream, 1)), stream)  # many errors only show in a row
            except hub_failures() as error:
                if _is_final(error):
                    raise
                why = with_class(error)
                log.warning("%s: streaming failed (%s); downloading it", source.dataset, why)
        yield from rows or _load(source, config, split, fields, streaming=False)
    except hub_failures() as error:
        why = _remedy(source, error)
        raise SourceError(f"dataset {source.dataset} cannot be loaded: {why}") from error


def _load(
    source: Source, config: str | None, split: str, fields: Sequence[str] | None, *, streaming: bool
) -> Any:
    import datasets

    options: dict[str, Any] = {"split": split, "streaming": streaming}
    if source.revision is not None:
        options["revision"] = source.revision
    if source.data_files:
        options["data_files"] = {split: list(source.data_files)}
    dataset = datasets.load_dataset(source.dataset, config, **options)
    if fields is not None and set(fields) <= set(dataset.column_names or ()):
        dataset = dataset.select_columns(list(fields))
    return dataset


def hub_failures() -> tuple[type[Exception], ...]:
    """Return the errors of `datasets` and the hub for data they cannot load; all become SourceErrors."""
    import datasets.exceptions
    import pyarrow

    python = (OSError, ValueError, RuntimeError, KeyError, TypeError, ImportError)
    return (*python, pyarrow.ArrowException, datasets.exceptions.DatasetsError)


def _is_final(error: Exception) -> bool:
    """Return whether a download would fail like the stream."""
    from datasets.exceptions import DatasetNotFoundError

    return isinstance(error, DatasetNotFoundError | ConnectionError) or _says(
        error, "offline", "BuilderConfig", "split", "scripts are no longer", "outgoing traffic"
    )


def _remedy(source: Source, error: Exception) -> str:
    """Return what is wrong with a dataset, and how to fix it."""
    from datasets.exceptions import DatasetNotFoundError

    if _says(error, "gated"):
        return "it is gated: accept its terms on the hub and run `hf auth login`, or mirror it"
    if _says(error, "offline", "outgoing traffic") or isinstance(error, ConnectionError):
        return (
            "the hub cannot be reached: run prefill where it can, or map the dataset to a local "
            f"copy under `mirrors: {{{source.dataset}: …}}`"
        )
    if isinstance(error, DatasetNotFoundError):
        at = f" at revision {source.revision}" if source.revision else ""
        return f"it is not on the hub{at}, or not open to you: check its name, or mirror it"
    if _says(error, "scripts are no longer"):
        return (
            "it needs a loading script, which is not run: use a copy without one, such as "
            "`revision: refs/convert/parquet`"
        )
    why = one_line(error) if isinstance(error, ValueError) else with_class(error)
    return f"{why}; correct its config, split or data_files, or mirror it"


def _says(error: Exception, *words: str) -> bool:
    return any(word.lower() in str(error).lower() for word in words)
