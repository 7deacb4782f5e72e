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
