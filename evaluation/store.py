"""The score store: rows of scored items, by checkpoint; what a job needs again it reads from there.

A part of an item's rows is a new Parquet file, with a summary as metadata; no file is ever changed.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evaluation.files import atomic_path, fingerprint, unordered

if TYPE_CHECKING:  # pyarrow is slow to import, and every job reads the workflow again
    import pyarrow as pa

log = logging.getLogger(__name__)

Found = TypeVar("Found")

_SUMMARY = b"summary"
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, KeyError),
    RuntimeError,  # for an encryption bit; NotImplementedError for a method
)
"""Exceptions that zipfile raises for damaged bytes."""


@dataclass(frozen=True)
class StoredScore:
    """A part of an item's rows, and the summary of what it took."""

    table: "pa.Table"
    summary: dict[str, Any]


class ScoreStore:
    """Scores as `<item>-<key>-<digest>.parquet` in `<root>/<checkpoint identity>/`.

    The key is the fingerprint of all that determines an item's numbers: the tokenizer (if it decodes
    answers), the protocol version and the numeric settings. The item's name is only for readers, and for
    searching it first: rows are also found under another item's name. The digest is that of the
    checkpoint's identity and the file's bytes, so that neither damaged scores are read nor those of a
    folder that was renamed. A job ends by packing all single files into one archive, as clusters limit
    the number of files. Archives never change, so jobs of one checkpoint need no lock: each packs the
    files that it finds, then removes them.
    """

    def __init__(self, root: Path, identity: str) -> None:
        self.folder, self.identity = root / identity, identity
        self._keys: dict[str, frozenset[str]] = {}
        self._opened: dict[Path, zipfile.ZipFile] = {}  # to read a list of entries takes long

    def read(self, name: str) -> StoredScore | None:
        """Return a part by the name of its file; None if it is not stored, or all copies are damaged.

        A damaged file is set aside. If one entry of an archive is damaged, the others remain readable.

        Raises:
            OSError: When a file cannot be read at all.
        """
        path = self.folder / name
        with contextlib.suppress(FileNotFoundError):
            content = path.read_bytes()
            if self._is_whole(name, content):
                return _parsed(content)
            _set_aside(path)
        # Archives are searched last, because scores move from files into archives.
        for archive in self._archives():
            with contextlib.suppress(FileNotFoundError, *_BROKEN):
                if archive not in self._opened:
                    self._opened[archive] = zipfile.ZipFile(archive)
                entry = self._opened[archive].getinfo(name)  # KeyError if it is in another one
                with contextlib.suppress(*_BROKEN):
                    content = self._opened[archive].read(entry)
                    if self._is_whole(name, content):
                        return _parsed(content)
                log.warning("%s: %s in it is damaged", archive, name)
        return None

    def put_part(self, item: str, key: Any, score: StoredScore) -> str:
        """Store rows of an item, which have a column `key`, in a new file; return its name.

        Different rows with the same keys become another part; an archive may have the earlier ones.
        """
        content = _written(score)
        name = f"{self.prefix(item, key)}-{self._digest(content)}.parquet"
        with atomic_path(self.folder / name) as temporary:
            temporary.write_bytes(content)
        return name

    def prefix(self, item: str, key: Any) -> str:
        """Return the prefix of the file names of an item's parts: its name and the key's fingerprint."""
        return f"{item}-{fingerprint(unordered(key))}"

    def holding(self, prefix: str, wanted: set[str]) -> Iterator[tuple[str, StoredScore]]:
        """Yield the parts that have rows with some keys, those stored under the item's name first.

        Args:
            wanted: Keys of rows. The caller removes found keys from it; the search ends when it is empty.

        Raises:
            OSError: When a file cannot be read at all.
        """
        key = f"-{prefix.rpartition('-')[2]}-"
        names = [name for name in self.names() if key in name]
        for name in sorted(names, key=lambda name: not name.startswith(prefix)):
            if not wanted:
                return
            if name in self._keys and not wanted & self._keys[name]:
                continue
            part = self.read(name)
            if part is None:
                continue
            self._keys[name] = frozenset(part.table["key"].to_pylist())
            if wanted & self._keys[name]:
                yield name, part

    def find_rows(
        self,
        prefix: str,
        keys: Iterable[str],
        read: Callable[[dict[str, Any], Mapping[str, Any]], Found | None],
    ) -> tuple[dict[str, Found], dict[str, Mapping[str, Any]]]:
        """Return the stored rows of an item, and the summaries of their parts by name.

        Args:
            prefix: Result of `prefix` for the item.
            read: Takes a row and its part's summary. If several rows have the same key, the first for
                which it does not return None is used.
        """
        values, used, wanted = dict[str, Found](), dict[str, Mapping[str, Any]](), set(keys)
        for name, part in self.holding(prefix, wanted):
            for row in part.table.to_pylist():
                if row["key"] in wanted and (one := read(row, part.summary)) is not None:
                    values[row["key"]] = one
                    used[name] = part.summary
            wanted -= values.keys()
        return values, used

    def names(self) -> list[str]:
        """Return the names of all stored parts, in single files or in archives, sorted."""
        names = {path.name for path in self.folder.glob("*.parquet")}
        return sorted(names.union(*map(_listed, self._archives())))

    def holders(self, names: Iterable[str]) -> list[Path]:
        """Return the archives that contain some parts, and single files of those in no archive.

        Another job of the checkpoint may pack and remove a single file at any time.
        """
        wanted = set(names)
        contents = {path: wanted.intersection(_listed(path)) for path in self._archives()}
        single = (self.folder / name for name in sorted(wanted.difference(*contents.values())))
        return [*filter(contents.get, contents), *filter(Path.is_file, single)]

    def pack(self) -> None:
        """Move all parts in single files into an archive."""
        files: dict[Path, bytes] = {}
        for path in sorted(self.folder.glob("*.parquet")):
            with contextlib.suppress(FileNotFoundError):  # another job has packed it
                files[path] = path.read_bytes()
        if not files:
            return
        digest = fingerprint([[path.name, self._digest(files[path])] for path in files])
        with (
            atomic_path(self.folder / f"{digest}.zip") as temporary,
            zipfile.ZipFile(temporary, "w") as archive,
        ):
            for path, content in files.items():
                archive.writestr(path.name, content)
        for path in files:
            path.unlink(missing_ok=True)

    def _archives(self) -> list[Path]:
        return sorted(self.folder.glob("*.zip"))

    def _digest(self, content: bytes) -> str:
        return hashlib.sha256(self.identity.encode() + content).hexdigest()[:16]

    def _is_whole(self, name: str, content: bytes) -> bool:
        return name.endswith(f"-{self._digest(content)}.parquet")


def _written(score: StoredScore) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    metadata = {_SUMMARY: json.dumps(score.summary, allow_nan=False).encode()}
    pq.write_table(score.table.replace_schema_metadata(metadata), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _parsed(content: bytes) -> StoredScore:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(content))
    summary = json.loads(table.schema.metadata[_SUMMARY])
    return StoredScore(table.replace_schema_metadata(None), summary)


def _listed(archive: Path) -> list[str]:
    """Return the names of an archive's files; none of one that is missing, or damaged and set aside."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except FileNotFoundError:  # another job has just set it aside
        return []
    except OSError as error:
        if error.errno != errno.EINVAL:  # raised for a position before the start of the file
            raise
    except _BROKEN:
        pass
    _set_aside(archive)
    return []


def _set_aside(path: Path) -> None:
    """Rename a damaged file, so that no job reads it again."""
    log.warning(
        "%s is damaged or of another checkpoint; set aside, and scored again where nothing else has it",
        path,
    )
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path.with_suffix(".damaged"))


class Rows:
    """The rows of one item in a store, under the key of all that determines their numbers.

    Args:
        is_complete: Whether a stored row is what is wanted now; None: every row is.
    """

    def __init__(
        self,
        store: ScoreStore,
        item: str,
        key: Any,
        is_complete: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> None:
        self._store, self._item, self._key, self._is_complete = store, item, key, is_complete
        self.prefix = store.prefix(item, key)
        self.used: dict[str, Mapping[str, Any]] = {}
        """The parts that have wanted rows, each with its summary."""

    def lacking(self, keys: Iterable[str]) -> list[str]:
        """Return the keys that no stored row has, in their order."""
        keys, is_complete = list(dict.fromkeys(keys)), self._is_complete
        stored, used = self._store.find_rows(
            self.prefix, keys, lambda row, _: (is_complete is None or is_complete(row)) or None
        )
        self.used |= used
        return [key for key in keys if key not in stored]

    def add(self, part: StoredScore) -> None:
        """Store more rows."""
        self.used[self._store.put_part(self._item, self._key, part)] = part.summary
