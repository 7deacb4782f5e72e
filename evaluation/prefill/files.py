"""Rows of local files, read a few at a time: Parquet, JSON, text, and `save_to_disk` folders.

A row is a mapping from field to value. A text file is one document under the field `text`.
"""

import codecs
import contextlib
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.errors import SourceError, one_line, reason_of
from evaluation.files import load_json
from evaluation.providers.adapters.mirror_files import PACKED, parts_of

DatasetRow = dict[str, Any]

_TEXTS = (".jsonl", ".json", ".txt")

SUFFIXES = (".parquet", *(f"{kind}{packed}" for kind in _TEXTS for packed in ("", *PACKED)))

_LFS = b"version https://git-lfs.github.com/spec/"

_BATCH = 64
"""Rows decoded at once; few, as documents may be long and memory is bounded."""

_AT_ONCE = 1 << 25
"""Bytes of Parquet decoded at once, estimated from the mean size of its rows."""

_LONGEST_DOCUMENT = 8 << 20
"""Characters of a text file kept together; a longer one is cut at the end of a line."""


def unreadable(path: Path, error: OSError) -> SourceError:
    """Return the error for a file that the system cannot read."""
    return SourceError(
        f"{error.filename or path}: cannot be read ({reason_of(error)}); make it readable"
    )


def read_rows(path: Path, fields: Sequence[str] | None) -> Iterator[DatasetRow]:
    """Yield the rows of a file, or of a folder of `save_to_disk`.

    Args:
        fields: Columns of Parquet to decode, if all exist; None: all.

    Raises:
        SourceError: It cannot be read; names the file, and the line or byte.
    """
    try:
        batches = _read_saved(path, fields) if path.is_dir() else _read_file(path, fields)
        yield from itertools.chain.from_iterable(batches)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be unpacked: {error}; copy it again") from None
    except OSError as error:
        if error.errno is None and path.name.endswith(PACKED):  # pyarrow's, of zstd
            raise SourceError(f"{path}: cannot be unpacked: {error}; copy it again") from None
        raise unreadable(path, error) from None


def _read_file(path: Path, fields: Sequence[str] | None) -> Iterator[list[DatasetRow]]:
    _check_fetched(path)
    if path.name.endswith(".parquet"):
        return _read_parquet(path, fields)
    return _read_text(path) if ".txt" in path.suffixes[-2:] else _read_json(path)


def _check_fetched(path: Path) -> None:
    """Refuse a pointer of Git LFS, which stands in place of a file that was not fetched."""
    with open(path, "rb") as file:
        is_pointer = file.read(len(_LFS)) == _LFS
    if is_pointer:
        raise SourceError(
            f"{path}: a pointer of Git LFS, not the file itself; run `git lfs pull` in its repository, or "
            "download it"
        )


def _read_parquet(path: Path, fields: Sequence[str] | None) -> Iterator[list[DatasetRow]]:
    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            columns = _columns(fields, file.schema_arrow.names)
            size = sum(
                file.metadata.row_group(n).total_byte_size for n in range(file.num_row_groups)
            )
            rows = _AT_ONCE * max(file.metadata.num_rows, 1) // max(size, 1)
            rows = max(1, min(_BATCH, rows))
            for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
                yield batch.to_pylist()
    except PermissionError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise SourceError(
            f"{path}: not readable as Parquet: {one_line(error)}; copy it again"
        ) from None


def _read_saved(folder: Path, fields: Sequence[str] | None) -> Iterator[list[DatasetRow]]:
    import datasets

    for part in parts_of(folder):
        _check_fetched(part)
    with _saved_errors(folder):
        dataset = datasets.load_from_disk(str(folder))
        columns = _columns(fields, dataset.column_names)
        if columns is not None:
            dataset = dataset.select_columns(columns)
    return _saved_batches(folder, dataset)


def _saved_batches(folder: Path, dataset: Any) -> Iterator[list[DatasetRow]]:
    with _saved_errors(folder):
        for batch in dataset.with_format("arrow").iter(_BATCH):
            yield batch.to_pylist()


@contextlib.contextmanager
def _saved_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise
    except (
        LookupError,
        OSError,
        TypeError,
        ValueError,
        AttributeError,
        pa.ArrowException,
    ) as error:
        raise SourceError(
            f"{folder}: not readable by load_from_disk ({reason_of(error)}); copy it again"
        ) from None


def check_not_binary(fields: DatasetRow) -> None:
    """Check that fields of a row are text, or structures of text.

    Raises:
        SourceError: A field is binary, or contains a binary value.
    """
    for name, value in fields.items():
        left = [value]
        while left:
            part = left.pop()
            if isinstance(part, bytes | bytearray):
                raise SourceError(
                    f"the field {name!r} is binary, not text; store it as a string column"
                )
            if isinstance(part, dict | list | tuple):
                left += part.values() if isinstance(part, dict) else part


def check_unicode(text: str) -> None:
    """Check that a text is valid Unicode: JSON can spell half a UTF-16 pair, which no tokenizer accepts.

    Raises:
        SourceError: It holds half a UTF-16 pair.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SourceError(
            f"not valid Unicode at character {error.start}; repair the data"
        ) from None


def _columns(fields: Sequence[str] | None, there: Sequence[str]) -> list[str] | None:
    """Return the fields to decode; all of them if one is missing, so that an error can name them."""
    return None if fields is None or set(fields) - set(there) else list(fields)


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.name.endswith(PACKED):
        return cast(IO[bytes], io.BufferedReader(pa.input_stream(str(path), compression="zstd")))
    return open(path, "rb")


def _read_json(path: Path) -> Iterator[list[DatasetRow]]:
    """Yield rows of JSON lines, or of one JSON array of objects."""
    with _open(path) as file:
        begin = file.read(64).lstrip()
    with _open(path) as file:
        if ".jsonl" not in path.name and begin.startswith(b"["):
            rows: Iterator[Any] = iter(_decode_json(path, file.read(), "the file"))
        else:
            lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
            rows = (_decode_json(path, line, f"line {number}") for number, line in lines)
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise SourceError(
                    f"{path}: row {number} is not an object with fields; write one object a row"
                )
            yield [row]


def _decode_json(path: Path, content: bytes, where: str) -> Any:
    try:
        return load_json(content)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, where, error.start) from None
    except ValueError as error:
        raise SourceError(f"{path}: {where} is not valid JSON ({error}); correct it") from None


def _read_text(path: Path) -> Iterator[list[DatasetRow]]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = ""
    at = 0
    with _open(path) as file:
        while True:
            chunk = file.read(1 << 20)
            try:
                text += decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                begins = at + len(chunk) - len(error.object)
                raise _not_utf8(path, "the file", begins + error.start) from None
            at += len(chunk)
            if not chunk:
                break
            if len(text) > _LONGEST_DOCUMENT:
                cut = text.rfind("\n") + 1 or len(text)
                yield [{"text": text[:cut]}]
                text = text[cut:]
    if text:
        yield [{"text": text}]


def _not_utf8(path: Path, where: str, byte: int) -> SourceError:
    return SourceError(f"{path}: {where} is not UTF-8 text (byte {byte}); convert it to UTF-8")
