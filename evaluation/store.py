"""The score store: a Parquet table per scored item and checkpoint, its summary in the metadata.

Whoever scores the same item again finds it there.
"""

import contextlib
import hashlib
import json
import logging
import os
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.files import atomic_path, fingerprint, write_parquet

if TYPE_CHECKING:  # pyarrow takes a while to import, and every job re-reads the workflow
    import pyarrow as pa

log = logging.getLogger(__name__)

_SUMMARY = b"summary"


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
        return self.read(self.path(item, key).name)

    def read(self, name: str) -> StoredScore | None:
        """A score by the name of its file; None like `get`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / name
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
        _write(self.path(item, key), score)

    def put_part(self, item: str, key: Any, score: StoredScore) -> None:
        """Adds rows to an item that is scored little by little; its rows have a column `key`."""
        rows = fingerprint(sorted(score.table["key"].to_pylist()))
        _write(self.folder / f"{self.prefix(item, key)}-{rows}.parquet", score)

    def prefix(self, item: str, key: Any) -> str:
        """How the names of an item's parts begin."""
        return f"{item}-{fingerprint(key)}"

    def parts(self, prefix: str) -> list[StoredScore]:
        """All parts of an item that can be read, in the order of their names."""
        found = (self.read(name) for name in sorted(self._names()) if name.startswith(f"{prefix}-"))
        return [part for part in found if part is not None]

    def holders(self, names: Iterable[str]) -> list[Path]:
        """The files that hold these scores (those that are there), each once."""
        wanted, found = set(names), []
        for archive in sorted(self.folder.glob("*.zip")):
            if wanted & set(_archived(archive)):
                found.append(archive)
        return found + [path for name in sorted(wanted) if (path := self.folder / name).is_file()]

    def names_of(self, prefix: str) -> list[str]:
        """The names of an item's parts."""
        return sorted(name for name in self._names() if name.startswith(f"{prefix}-"))

    def _names(self) -> set[str]:
        names = {path.name for path in self.folder.glob("*.parquet")}
        return names.union(*(_archived(archive) for archive in self.folder.glob("*.zip")))

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


def _write(path: Path, score: StoredScore) -> None:
    summary = json.dumps(score.summary, allow_nan=False).encode()
    write_parquet(path, score.table.replace_schema_metadata({_SUMMARY: summary}))


def _archived(archive: Path) -> list[str]:
    """Names in an archive; none if it is damaged, which reading a score of it then tells."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except (FileNotFoundError, zipfile.BadZipFile):
        return []


def _file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _set_aside(path: Path, error: Exception) -> None:
    log.warning("%s is damaged (%s); set aside and scored again", path, error)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path.with_suffix(".damaged"))
