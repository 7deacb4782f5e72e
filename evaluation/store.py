"""The score store: a Parquet table per scored item and checkpoint, with its summary as metadata.

A job that needs the same score again reads it from the store.
"""

import hashlib
import json
import logging
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evaluation.files import atomic_path, fingerprint, load_json, unordered, write_parquet
from evaluation.score_archives import archived_names, file_bytes, member_bytes, set_aside

if TYPE_CHECKING:  # pyarrow is slow to import, and every job reads the workflow again
    import pyarrow as pa

log = logging.getLogger(__name__)

Found = TypeVar("Found")

_SUMMARY, _DIGEST, _CHECKPOINT = b"summary", b"digest", b"checkpoint"


@dataclass(frozen=True)
class StoredScore:
    """Scores of one item: a table row per block or candidate, and their summary."""

    table: "pa.Table"
    summary: dict[str, Any]


class ScoreStore:
    """Scores as `<item>-<key>.parquet` in `<root>/<checkpoint identity>/`.

    The key is the fingerprint of all that determines an item's numbers: its token ids, the tokenizer (if
    it decodes answers), the protocol version and the numeric settings. The item's name is only for
    readers, and for searching it first: a score is also found under another item's name. A job ends by
    packing all single files into one archive, as clusters limit the number of files. Archives never
    change, so jobs of one checkpoint need no lock: each packs the files that it finds, then removes
    them. Each file has the checkpoint's identity inside, so scores in a folder that was renamed or
    exchanged with another are not used.
    """

    def __init__(self, root: Path, identity: str) -> None:
        self.folder, self.identity = root / identity, identity
        self._rows: dict[str, frozenset[str]] = {}

    def path(self, item: str, key: Any) -> Path:
        """Return the file that `put` writes; `key` has everything that determines the item's numbers."""
        return self.folder / f"{self.prefix(item, key)}.parquet"

    def find(self, item: str, key: Any) -> str | None:
        """Return the name of a readable file with an item's score, maybe stored under another item's name."""
        names = self._under_key(self.prefix(item, key))
        return next((name for name in names if self.read(name) is not None), None)

    def read(self, name: str) -> StoredScore | None:
        """Return a score by the name of its file; None if it is not stored, or all copies are damaged.

        A damaged file is set aside. If one entry of an archive is damaged, the others remain readable.

        Raises:
            OSError: When a file cannot be read at all.
        """
        path = self.folder / name
        content = file_bytes(path)
        if content is not None:
            parsed = _parsed(content)
            if parsed is None:
                set_aside(path)
            elif self._is_ours(path, parsed.checkpoint):
                return parsed.score
        # Archives are searched last, because scores move from files into archives.
        for archive in sorted(self.folder.glob("*.zip")):
            content = member_bytes(archive, name)
            parsed = None if content is None else _parsed(content)
            if parsed is not None and self._is_ours(archive, parsed.checkpoint):
                return parsed.score
        return None

    def put(self, item: str, key: Any, score: StoredScore) -> None:
        """Store an item's score."""
        _write(self.path(item, key), score, self.identity)

    def put_part(self, item: str, key: Any, score: StoredScore) -> str:
        """Add rows, with a column `key`, to an item that is scored in several parts.

        Different rows with the same keys become another part; an archive may have the earlier ones.
        """
        name = f"{self.prefix(item, key)}-{fingerprint(score.table.to_pylist())}.parquet"
        _write(self.folder / name, score, self.identity)
        return name

    def _is_ours(self, path: Path, checkpoint: str) -> bool:
        """Return whether a file's score is of this checkpoint, whatever folder it is in; log if not."""
        if checkpoint == self.identity:
            return True
        log.warning(
            "%s: a score in it is of %s, not of %s; it is not used", path, checkpoint, self.identity
        )
        return False

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
        for name in self._under_key(prefix):
            if not wanted:
                return
            if name in self._rows and not wanted & self._rows[name]:
                continue
            part = self.read(name)
            if part is None:
                continue
            self._rows[name] = frozenset(part.table["key"].unique().to_pylist())
            if wanted & self._rows[name]:
                yield name, part

    def find_rows(
        self,
        prefix: str,
        keys: Iterable[str],
        read: Callable[[dict[str, Any], Mapping[str, Any]], Found | None],
    ) -> tuple[dict[str, Found], dict[str, Mapping[str, Any]]]:
        """Return the stored rows of an item.

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
        """Return the names of all stored scores, in single files or in archives, sorted."""
        names = {path.name for path in self.folder.glob("*.parquet")}
        return sorted(
            names.union(*(archived_names(archive) for archive in self.folder.glob("*.zip")))
        )

    def _under_key(self, prefix: str) -> list[str]:
        """Return file names with an item's key: those with its name first, then those of other items."""
        key = f"-{prefix.rpartition('-')[2]}"
        names = [name for name in self.names() if f"{key}." in name or f"{key}-" in name]
        return sorted(names, key=lambda name: not name.startswith(prefix))

    def holders(self, names: Iterable[str]) -> list[Path]:
        """Return the archives that contain some scores, and single files of those in no archive.

        Another job of the checkpoint may pack and remove a single file at any time.
        """
        wanted = set(names)
        contents = {path: set(archived_names(path)) for path in sorted(self.folder.glob("*.zip"))}
        archives = [archive for archive, held in contents.items() if wanted & held]
        single = wanted.difference(*contents.values())
        return archives + [
            path for name in sorted(single) if (path := self.folder / name).is_file()
        ]

    def pack(self) -> None:
        """Move all scores in single files into an archive."""
        files = {
            path: content for path in self.folder.glob("*.parquet") if (content := file_bytes(path))
        }
        if not files:
            return
        contents = {path.name: hashlib.sha256(c).hexdigest() for path, c in files.items()}
        digest = fingerprint(unordered(contents))
        with (
            atomic_path(self.folder / f"{digest}.zip") as temporary,
            zipfile.ZipFile(temporary, "w") as archive,
        ):
            for path, content in sorted(files.items()):
                archive.writestr(path.name, content)
        for path in files:
            path.unlink(missing_ok=True)


class _Parsed(NamedTuple):
    score: StoredScore
    checkpoint: str
    """Identity of the checkpoint."""


def _write(path: Path, score: StoredScore, checkpoint: str) -> None:
    summary = json.dumps(score.summary, allow_nan=False).encode()
    metadata = {
        _SUMMARY: summary,
        _DIGEST: _digest(summary, score.table),
        _CHECKPOINT: checkpoint.encode(),
    }
    write_parquet(path, score.table.replace_schema_metadata(metadata))


def _parsed(content: bytes) -> _Parsed | None:
    """Return the score in a file's bytes; None if they are damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        metadata = table.schema.metadata
        summary = load_json(metadata[_SUMMARY], finite=True)
        is_whole = metadata[_DIGEST] == _digest(metadata[_SUMMARY], table)
        checkpoint = metadata[_CHECKPOINT].decode("utf-8", "replace")
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        return None
    if not isinstance(summary, dict) or not is_whole:
        return None
    return _Parsed(StoredScore(table.replace_schema_metadata(None), summary), checkpoint)


def _digest(summary: bytes, table: "pa.Table") -> bytes:
    """Return a checksum of the summary and the column names, for which Parquet has none."""
    return fingerprint([summary.decode(), table.schema.names]).encode()
