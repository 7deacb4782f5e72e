"""Rows from the hub, streamed or downloaded, without loading scripts or remote code."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import Row
from evaluation.settings.sources import Source

log = logging.getLogger(__name__)


def hub_rows(
    source: Source, *, config: str | None, split: str, fields: Sequence[str] | None
) -> Iterator[Row]:
    """Yield rows of a split; stream where the source asks for it, else, or failing that, download.

    Args:
        source: The slice or task that names the dataset and its revision.
        config: The dataset's configuration; None: it has only one.
        split: Name of the split.
        fields: Columns to load, where the format allows it; None: all.

    Yields:
        Rows in order.

    Raises:
        SourceError: `datasets` raised whatever it raises, here in one sentence.
    """
    with _one_sentence(source):
        rows: Iterable[Row] | None = None
        if source.streaming:
            try:
                stream = iter(_load(source, config, split, fields, streaming=True))
                rows = chain(list(islice(stream, 1)), stream)  # many errors only show in a row
            except _failures() as error:
                if _is_final(error):
                    raise
                why = _short(error)
                log.warning("%s: streaming failed (%s); downloading it", source.dataset, why)
        if rows is None:
            rows = _load(source, config, split, fields, streaming=False)
        yield from rows


def _load(
    source: Source, config: str | None, split: str, fields: Sequence[str] | None, *, streaming: bool
) -> Iterable[Row]:
    import datasets

    options: dict[str, Any] = {"split": split, "streaming": streaming}
    if source.revision is not None:
        options["revision"] = source.revision
    if source.data_files:
        options["data_files"] = {split: list(source.data_files)}
    dataset = datasets.load_dataset(source.dataset, config, **options)
    if fields is not None and set(fields) <= set(dataset.column_names or ()):
        dataset = dataset.select_columns(list(fields))
    rows: Iterable[Row] = dataset
    return rows


def resolved_commit(source: Source) -> str | None:
    """Return the commit that a dataset's revision points at now.

    Args:
        source: The slice or task that names the dataset and its revision.

    Returns:
        The commit; None, after a warning, if the hub fails.
    """
    from huggingface_hub import HfApi

    try:
        return HfApi().dataset_info(str(source.dataset), revision=source.revision).sha
    except _failures() as error:
        log.warning("%s: its commit is not recorded: %s", source.dataset, _short(error))
        return None


def _failures() -> tuple[type[Exception], ...]:
    """Return what `datasets` and the hub raise for data they cannot give; all of it is translated."""
    import datasets.exceptions
    import pyarrow

    python = (OSError, ValueError, RuntimeError, KeyError, TypeError, ImportError)
    return (*python, pyarrow.ArrowException, datasets.exceptions.DatasetsError)


@contextlib.contextmanager
def _one_sentence(source: Source) -> Iterator[None]:
    try:
        yield
    except _failures() as error:
        why = _remedy(source, error)
        raise SourceError(f"dataset {source.dataset} cannot be loaded: {why}") from error


def _is_final(error: Exception) -> bool:
    """Return whether a download would fail like the stream did."""
    from datasets.exceptions import DatasetNotFoundError

    return isinstance(error, DatasetNotFoundError | ConnectionError) or _says(
        error, "offline", "BuilderConfig", "split", "scripts are no longer", "outgoing traffic"
    )


def _remedy(source: Source, error: Exception) -> str:
    """Return what is wrong with a dataset, and what helps."""
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
    return f"{_short(error)}; correct its config, split or data_files, or mirror it"


def _says(error: Exception, *words: str) -> bool:
    return any(word.lower() in str(error).lower() for word in words)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".removesuffix(": ")
