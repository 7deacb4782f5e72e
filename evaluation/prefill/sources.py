"""Sources of the rows of a slice or task: local files, a mirror, or the hub at a commit.

What identifies a source is its commit on the hub, or name, size and time of its local files. An entry
of the cache holds this state. It is current as long as `entry_state` gives the same.
"""

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError, one_line, with_class
from evaluation.prefill.files import DatasetRow, read_rows, stamps_of
from evaluation.providers.mirrors import check_parts, find_mirror, is_data_file, split_files
from evaluation.settings.config import Config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.sources import Slice, Source, Task

Item = Slice | Task | GenerationTask | ProviderChoices | ProviderTask


@dataclass(frozen=True)
class ResolvedSplit:
    """One split, resolved: local `files`, or None where it is on the hub."""

    source: Source
    config: str | None
    split: str
    files: tuple[Path, ...] | None

    def __str__(self) -> str:
        if self.source.dataset is None:
            return ", ".join(map(str, self.source.files))
        parts = [self.source.dataset, self.config, f"split {self.split}"]
        return " ".join(part for part in parts if part)

    @cached_property
    def commit(self) -> str | None:
        """The commit on the hub that `revision` names now, which is what is read; None for local files."""
        if self.files is not None:
            return None
        from huggingface_hub import HfApi

        with _hub_errors(self.source):
            found = HfApi().dataset_info(str(self.source.dataset), revision=self.source.revision)
        return found.sha

    def rows(self) -> Iterator[DatasetRow]:
        """Yield the rows in order.

        Raises:
            SourceError: The data cannot be read.
        """
        if self.files is not None:
            return chain.from_iterable(map(read_rows, self.files))
        return self._hub_rows()

    def first(self, most: int) -> tuple[list[DatasetRow], Iterator[DatasetRow]]:
        """Return the first rows, at most `most`, and those behind them, which are read when asked for.

        Raises:
            SourceError: The data cannot be read, or there is no row.
        """
        rows = self.rows()
        first_rows = list(islice(rows, most))
        if not first_rows:
            raise SourceError(f"{self} has no rows; choose another split or config")
        return first_rows, rows

    def _hub_rows(self) -> Iterator[DatasetRow]:
        import datasets

        commit, source = self.commit, self.source
        options: dict[str, Any] = {"split": self.split, "streaming": source.streaming}
        if source.data_files:
            options["data_files"] = {self.split: list(source.data_files)}
        with _hub_errors(source):
            yield from datasets.load_dataset(
                source.dataset, self.config, revision=commit, **options
            )


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
        SourceError: Local files are missing, or it is not clear which they are.
    """
    config, split = config or source.config, split or source.split
    if source.dataset is None:
        return ResolvedSplit(source, config, split, tuple(_local_files(source.files, folders)))
    root = find_mirror(source.dataset, mirrors)
    if root is None:
        return ResolvedSplit(source, config, split, None)
    files = split_files(root, source.dataset, config, split, source.data_files)
    return ResolvedSplit(source, config, split, tuple(files))


def locate_item(item: Item, settings: Config) -> tuple[list[ResolvedSplit], list[ResolvedSplit]]:
    """Find the rows of each configuration of an item, and its solved examples if a split has them.

    Both are empty for a provider's task, whose files the provider itself finds.
    """
    if isinstance(item, ProviderChoices | ProviderTask):
        return [], []

    def find(split: str) -> list[ResolvedSplit]:
        mirrors, folders = settings.mirrors, settings.folders
        return [locate(item, mirrors, config=c, split=split, folders=folders) for c in configs]

    configs = (isinstance(item, Task) and item.configs) or (item.config,)
    is_written_out = isinstance(item, GenerationTask) and item.fewshot_examples
    if isinstance(item, Slice) or not item.num_fewshot or is_written_out:
        return find(item.split), []
    return find(item.split), find(item.fewshot_split)


def state_of(splits: Sequence[ResolvedSplit]) -> list[dict[str, Any]]:
    """Return what tells whether splits are still the same; nothing is asked of the hub."""
    return [{"files": None if split.files is None else stamps_of(split.files)} for split in splits]


def provided_state(
    read: Sequence[tuple[str, str | None, str]], mirrors: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the same for the datasets, configurations and splits that a provider has read."""
    state = []
    for dataset, config, split in read:
        root = find_mirror(dataset, mirrors)
        files = root and stamps_of(split_files(root, dataset, config, split))
        state.append({"read": [dataset, config, split], "files": files})
    return state


def item_state(item: Item, settings: Config, known: Any) -> list[dict[str, Any]]:
    """Return the state that an item's sources have now; `known` is the stored one.

    Raises:
        SourceError: Files are missing.
    """
    if isinstance(item, ProviderChoices | ProviderTask):
        read = [one["read"] for one in known or () if isinstance(one, dict) and "read" in one]
        return provided_state(read, settings.mirrors)
    return state_of([*chain(*locate_item(item, settings))])


def describe(splits: Sequence[ResolvedSplit], state: list[dict[str, Any]]) -> dict[str, Any]:
    """Return dataset, revision, commit (None for local files) and state, for meta.json.

    Args:
        state: That from before the rows were read.

    Raises:
        SourceError: A file was changed since.
    """
    if state_of(splits) != state:
        raise SourceError(
            f"{splits[0]} was changed while it was read; wait until whoever writes it is done, and run the "
            "same command again"
        )
    source = splits[0].source
    commits = [split.commit for split in splits if split.commit]
    resolved = commits[0] if commits else None
    return {
        "dataset": source.dataset,
        "revision": source.revision,
        "resolved": resolved,
        "state": state,
    }


def _local_files(patterns: Sequence[str], folders: Sequence[str]) -> list[Path]:
    """Return the files that paths and patterns name, in the order of these, each pattern's sorted.

    Raises:
        SourceError: A pattern names nothing, a file twice, or something other than a data file.
    """
    files: list[Path] = []
    for pattern in patterns:
        for path in _matches(pattern, folders):
            if path.is_dir():
                files += split_files(path, str(path), None, "train")
            elif is_data_file(path):
                files.append(path)
            else:
                raise SourceError(
                    f"files: {path} is not Parquet, JSON(L) or text by its name; convert it, or "
                    "give it the suffix of what it is (.parquet, .jsonl, .json, .txt)"
                )
    seen: dict[str, Path] = {}
    for path in files:
        if (first := seen.setdefault(os.path.realpath(path), path)) is not path:
            other = "" if first == path else f" as {first}"
            raise SourceError(f"files: {path} is named twice{other}; name each file once")
    check_parts(files, may_lack=True)
    return files


def _matches(pattern: str, folders: Sequence[str]) -> list[Path]:
    """Return what a pattern names in the first folder where it names anything."""
    places = [pattern] if os.path.isabs(pattern) else [f"{folder}/{pattern}" for folder in folders]
    places = list(dict.fromkeys([*places, pattern]))
    for place in places:
        if paths := sorted(glob.glob(place, recursive=True)):
            return [Path(path) for path in paths]
    looked = [os.path.abspath(place) for place in places] if len(places) > 1 else places
    raise SourceError(f"files: nothing is at {' or at '.join(looked)}; correct the path")


@contextlib.contextmanager
def _hub_errors(source: Source) -> Iterator[None]:
    """Turn errors of `datasets` and the hub into one SourceError with a remedy."""
    import datasets.exceptions
    import pyarrow

    python = (OSError, ValueError, RuntimeError, KeyError, TypeError, ImportError)
    try:
        yield
    except (*python, pyarrow.ArrowException, datasets.exceptions.DatasetsError) as error:
        why = _remedy(source, error)
        raise SourceError(f"dataset {source.dataset} cannot be loaded: {why}") from error


def _remedy(source: Source, error: Exception) -> str:
    """Return what is wrong with a dataset, and how to fix it."""
    text = f"{type(error).__name__} {error}".lower()
    at = f" at revision {source.revision}" if source.revision else ""
    remedies = {
        "gated": "it is gated: accept its terms on the hub and run `hf auth login`, or mirror it",
        ("offline", "connection", "connect", "outgoing traffic"): (
            "the hub cannot be reached: run prefill where it can, or map the dataset to a local "
            f"copy under `mirrors: {{{source.dataset}: …}}`"
        ),
        ("datasetnotfound", "repositorynotfound", "revisionnotfound"): (
            f"it is not on the hub{at}, or not open to you: check its name"
        ),
        "scripts are no longer": (
            "it needs a loading script, which is not run: use a copy without one, such as "
            "`revision: refs/convert/parquet`"
        ),
    }
    for words, remedy in remedies.items():
        if any(word in text for word in ([words] if isinstance(words, str) else words)):
            return remedy
    why = one_line(error) if isinstance(error, ValueError) else with_class(error)
    return f"{why}; correct its config, split or data_files, or mirror it"
