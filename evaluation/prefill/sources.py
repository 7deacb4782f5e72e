"""Sources of the rows of a slice or task: local files, a mirror, or the hub at a commit.

What identifies a source is its commit on the hub, or name, size and time of its local files. An entry
of the cache holds this state. It is current as long as `item_state` gives the same.

Files are Parquet, JSON lines, one JSON array, text (a document a file, under the field `text`), or folders
of `save_to_disk`. JSON is not read by `datasets`, which makes floats of whole numbers beside a null, and
text of the objects in an array.
"""

import contextlib
import glob
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.errors import SourceError, one_line, with_class
from evaluation.files import load_json
from evaluation.providers.mirrors import (
    SUFFIXES,
    check_parts,
    find_mirror,
    is_data_file,
    split_files,
)
from evaluation.settings.config import Config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.sources import Source, Task
from evaluation.tokenizers.files import hub_errors

DatasetRow = dict[str, Any]

_LFS = b"version https://git-lfs.github.com/spec/"

_BATCH = 64
"""Rows decoded at once; few, as documents may be long."""


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

    @property
    def commit(self) -> str | None:
        """The commit on the hub that `revision` names now, which is what is read; None for local files."""
        if self.files is not None:
            return None
        with _hub_errors(self.source):
            return hub_commit(str(self.source.dataset), self.source.revision)

    def rows(self) -> Iterator[DatasetRow]:
        """Yield the rows in order."""
        if self.files is not None:
            return chain.from_iterable(map(read_rows, self.files))
        return self._hub_rows()

    def first(self, most: int) -> tuple[list[DatasetRow], Iterator[DatasetRow]]:
        """Return the first rows, at most `most`, and those behind them, which are read when asked for."""
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


@cache
def hub_commit(dataset: str, revision: str | None) -> str | None:
    """Return the commit that a revision of a dataset names, the same for all of a process."""
    from huggingface_hub import HfApi

    return HfApi().dataset_info(dataset, revision=revision).sha


def locate(
    source: Source,
    mirrors: dict[str, str],
    config: str | None = None,
    split: str | None = None,
    folders: Sequence[str] = (),
) -> ResolvedSplit:
    """Find a source's split, with its local files if it has them, which `folders` may hold.

    Without configuration or split, they are the source's own.
    """
    config, split = config or source.config, split or source.split
    if source.dataset is None:
        return ResolvedSplit(source, config, split, tuple(_local_files(source.files, folders)))
    root = find_mirror(source.dataset, mirrors)
    if root is None:
        return ResolvedSplit(source, config, split, None)
    files = split_files(root, source.dataset, config, split, source.data_files)
    return ResolvedSplit(source, config, split, tuple(files))


def locate_item(item: Source, settings: Config) -> tuple[list[ResolvedSplit], list[ResolvedSplit]]:
    """Find the rows of each configuration of an item, and its solved examples if a split has them."""
    configs = (isinstance(item, Task) and item.configs) or (item.config,)
    splits = [item.split]
    is_written_out = isinstance(item, GenerationTask) and item.fewshot_examples
    if isinstance(item, Task | GenerationTask) and item.num_fewshot and not is_written_out:
        splits.append(item.fewshot_split)
    mirrors, folders = settings.mirrors, settings.folders
    found = [[locate(item, mirrors, c, split, folders) for c in configs] for split in splits]
    return found[0], found[1] if len(found) > 1 else []


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


def item_state(item: Any, settings: Config, known: Any) -> list[dict[str, Any]]:
    """Return the state that an item's sources have now; `known` is the stored one."""
    if isinstance(item, ProviderChoices | ProviderTask):
        return provided_state([record["read"] for record in known or ()], settings.mirrors)
    return state_of([*chain(*locate_item(item, settings))])


def describe(splits: Sequence[ResolvedSplit], state: list[dict[str, Any]]) -> dict[str, Any]:
    """Return dataset, revision, commit and state for meta.json.

    The state is from before the splits were read: if they have changed since, the entry is outdated.
    """
    source = splits[0].source
    read = {"dataset": source.dataset, "revision": source.revision}
    return {**read, "resolved": splits[0].commit, "state": state}


def _local_files(patterns: Sequence[str], folders: Sequence[str]) -> list[Path]:
    """Return the files that paths and patterns name, in the order of these, each pattern's sorted."""
    files: list[Path] = []
    for path in (path for pattern in patterns for path in _matches(pattern, folders)):
        if path.is_dir():
            files += split_files(path, str(path), None, "train")
        elif is_data_file(path):
            files.append(path)
        else:
            raise SourceError(
                f"files: {path} is none of {', '.join(SUFFIXES)}; convert or rename it"
            )
    twice = [path for path, count in Counter(map(os.path.realpath, files)).items() if count > 1]
    if twice:
        raise SourceError(f"files: {twice[0]} is named twice; name each file once")
    check_parts(files, may_lack=True)
    return files


def _matches(pattern: str, folders: Sequence[str]) -> list[Path]:
    """Return what a pattern names in the first folder where it names anything."""
    places = [*(os.path.join(folder, pattern) for folder in folders), pattern]
    for place in places:
        if paths := sorted(glob.glob(place, recursive=True)):
            return [Path(path) for path in paths]
    looked = dict.fromkeys(map(os.path.abspath, places))
    raise SourceError(f"files: nothing is at {' or at '.join(looked)}; correct the path")


@contextlib.contextmanager
def _hub_errors(source: Source) -> Iterator[None]:
    """Turn errors of `datasets` and the hub into one SourceError with a remedy."""
    from datasets.exceptions import DatasetsError

    try:
        yield
    except (DatasetsError, NotImplementedError, RuntimeError, ValueError, *hub_errors()) as error:
        if type(error.__cause__) in (MemoryError, OSError, PermissionError):  # of this machine
            raise
        raise SourceError(
            f"dataset {source.dataset} cannot be loaded from the hub: {with_class(error)}; correct its name, "
            "revision, config, split or data_files (one with a loading script may have `revision: "
            "refs/convert/parquet`), run `hf auth login` if it is gated, or map it to a local copy under "
            f"`mirrors: {{{source.dataset}: …}}`"
        ) from error


def parts_of(path: Path) -> list[Path]:
    """Return a file itself, or the files that `save_to_disk` wrote into a folder, without caches."""
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.rglob("*") if part.is_file())
    return [part for part in parts if not part.name.startswith(("cache-", "."))]


def stamps_of(paths: Iterable[Path]) -> list[list[Any]]:
    """Return name, size and time of change (ns) of files, and of those of saved folders, as in JSON.

    So a folder that was moved, or copied with its times, is the same.
    """
    try:
        found = ((part.name, part.stat()) for part in chain(*map(parts_of, paths)))
        return [[name, status.st_size, status.st_mtime_ns] for name, status in found]
    except OSError as error:
        raise SourceError(f"{error.filename}: cannot be read ({error.strerror})") from None


def read_rows(path: Path) -> Iterator[DatasetRow]:
    """Yield the rows of a file, or of a folder of `save_to_disk`."""
    try:
        for part in parts_of(path):
            _check_fetched(part)
        yield from _rows(path)
    except PermissionError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}); make it readable") from None
    except (LookupError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read ({one_line(error)}); copy it again") from None


def _rows(path: Path) -> Iterator[DatasetRow]:
    if path.is_dir():
        import datasets

        yield from datasets.load_from_disk(str(path))
    elif path.suffix == ".parquet":
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
                yield from batch.to_pylist()
    else:
        with io.BufferedReader(pa.input_stream(str(path), compression="detect")) as file:
            if ".txt" in path.suffixes[-2:]:
                yield {"text": file.read().decode()}
            else:
                yield from _json_rows(path, file)


def _json_rows(path: Path, file: io.BufferedReader) -> Iterator[DatasetRow]:
    """Yield rows of JSON lines, or of one JSON array of objects."""
    is_array = ".jsonl" not in path.name and file.peek(64).lstrip().startswith(b"[")
    for number, line in enumerate(load_json(file.read()) if is_array else file, 1):
        try:
            row = line if is_array else load_json(line) if line.strip() else None
        except ValueError as error:
            raise SourceError(
                f"{path}: line {number} is not valid JSON in UTF-8 ({error}); correct it"
            ) from None
        if isinstance(row, dict):
            yield row
        elif row is not None:
            raise SourceError(f"{path}: row {number} is not an object; write one object a row")


def _check_fetched(path: Path) -> None:
    """Refuse a pointer of Git LFS, which stands in place of a file that was not fetched."""
    with open(path, "rb") as file:
        is_pointer = file.read(len(_LFS)) == _LFS
    if is_pointer:
        raise SourceError(
            f"{path}: a pointer of Git LFS, not the file itself; run `git lfs pull` in its repository, or "
            "download it"
        )
