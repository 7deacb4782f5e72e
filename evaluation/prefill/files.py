"""Rows of local files, and what tells whether a file is still the same.

Parquet, JSON lines, one JSON array, text (a document a file, under the field `text`), and folders of
`save_to_disk`. JSON is not read by `datasets`, which makes floats of whole numbers beside a null, and
text of the objects in an array.
"""

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.errors import SourceError, one_line
from evaluation.files import load_json
from evaluation.providers.mirrors import parts_of

DatasetRow = dict[str, Any]

_LFS = b"version https://git-lfs.github.com/spec/"

_BATCH = 64
"""Rows decoded at once; few, as documents may be long."""


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
    if ".jsonl" not in path.name and file.peek(64).lstrip().startswith(b"["):
        rows: Iterable[tuple[int, Any]] = enumerate(load_json(file.read()), 1)
    else:
        rows = ((number, _decoded(path, number, line)) for number, line in enumerate(file, 1))
    for number, row in rows:
        if isinstance(row, dict):
            yield row
        elif row is not None:
            raise SourceError(f"{path}: row {number} is not an object; write one object a row")


def _decoded(path: Path, number: int, line: bytes) -> Any:
    try:
        return load_json(line) if line.strip() else None
    except ValueError as error:
        raise SourceError(
            f"{path}: line {number} is not valid JSON in UTF-8 ({error}); correct it"
        ) from None


def _check_fetched(path: Path) -> None:
    """Refuse a pointer of Git LFS, which stands in place of a file that was not fetched."""
    with open(path, "rb") as file:
        is_pointer = file.read(len(_LFS)) == _LFS
    if is_pointer:
        raise SourceError(
            f"{path}: a pointer of Git LFS, not the file itself; run `git lfs pull` in its repository, or "
            "download it"
        )
