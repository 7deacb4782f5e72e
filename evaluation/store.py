"""Atomic files, fingerprints, and the score store.

A file is written beside its place and renamed, so it is there whole or not at all, also when two
jobs write it at once. The score store keeps a Parquet table per scored item and checkpoint, with
its summary in the table's metadata; whoever scores the same item again finds it there.
"""

import contextlib
import glob
import hashlib
import json
import logging
import os
import shutil
import socket
import time
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pyarrow takes a while to import, and every job re-reads the workflow
    import pyarrow as pa

log = logging.getLogger(__name__)

_SUMMARY = b"summary"


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`, moved into place at the end, removed on error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = beside(path)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A hidden path to write to before it is renamed to `path`; removes what killed writers left."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(FileNotFoundError):  # another writer was faster
            if _is_abandoned(left):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    writer = f"{socket.gethostname()}+{os.getpid()}+{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{path.name}.{writer}.tmp")


def _is_abandoned(temporary: Path) -> bool:
    """Whether its writer is gone from this host; of another host's, whether it is a day old."""
    age = time.time() - temporary.stat().st_mtime
    writer = temporary.name.split("+")
    if len(writer) == 3 and writer[0].endswith(f".{socket.gethostname()}"):
        return age > 60 and not Path("/proc", writer[1]).exists()
    return age > 24 * 3600


def write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Writes standard JSON; raises ValueError for NaN, which JSON does not have."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_jsonl(path: Path, rows: Iterable[Any]) -> int:
    """Writes one JSON value a line; returns how many."""
    count = 0
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def write_parquet(path: Path, table: "pa.Table") -> None:
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def fingerprint(content: Any) -> str:
    """First 16 hex digits of the SHA-256 of a JSON value, its keys sorted."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class StoredScore:
    """What scoring one item gave: a row per block or candidate, and the summary of them."""

    table: "pa.Table"
    summary: dict[str, Any]


class ScoreStore:
    """Scores as `<item>-<key>.parquet` in `<root>/<checkpoint identity>/`.

    The key is the fingerprint of all that determines an item's numbers: its data, the tokenizer,
    the protocol version and the numeric settings. What a job has added is packed into one archive
    when it is done, as file systems of clusters count files. Archives stay as they are, so that
    jobs of one checkpoint need no lock: each packs the files that it finds, after that removes them.
    """

    def __init__(self, root: Path, identity: str) -> None:
        self.folder = root / identity

    def path(self, item: str, key: Any) -> Path:
        return self.folder / f"{item}-{fingerprint(key)}.parquet"

    def get(self, item: str, key: Any) -> StoredScore | None:
        """What is stored; None if nothing is, or if the file is damaged (it is set aside)."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path(item, key)
        content = self._read(path)
        if content is None:
            return None
        try:
            table = pq.read_table(pa.BufferReader(content))
            summary = json.loads(table.schema.metadata[_SUMMARY])
        except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as error:
            _set_aside(path, error)
            return None
        return StoredScore(table.replace_schema_metadata(None), summary)

    def put(self, item: str, key: Any, score: StoredScore) -> None:
        summary = json.dumps(score.summary, allow_nan=False).encode()
        write_parquet(
            self.path(item, key), score.table.replace_schema_metadata({_SUMMARY: summary})
        )

    def pack(self) -> None:
        """Moves all scores that are files of their own into an archive."""
        files = {
            path: content for path in self.folder.glob("*.parquet") if (content := _file(path))
        }
        if not files:
            return
        digest = fingerprint({p.name: hashlib.sha256(c).hexdigest() for p, c in files.items()})
        with (
            atomic_path(self.folder / f"{digest}.zip") as temporary,
            zipfile.ZipFile(temporary, "w") as archive,
        ):
            for path, content in sorted(files.items()):
                archive.writestr(path.name, content)
        for path in files:
            path.unlink(missing_ok=True)

    def _read(self, path: Path) -> bytes | None:
        """A score's file, or what an archive has of it; looked for in the order that it moves in."""
        content = _file(path)
        archives = sorted(self.folder.glob("*.zip")) if content is None else []
        for name in archives:
            try:
                with zipfile.ZipFile(name) as archive:
                    if path.name in archive.namelist():
                        return archive.read(path.name)
            except (zipfile.BadZipFile, zlib.error) as error:
                _set_aside(name, error)
        return content


def _file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _set_aside(path: Path, error: Exception) -> None:
    log.warning("%s is damaged (%s); set aside and scored again", path, error)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path.with_suffix(".damaged"))
