"""Atomic files and fingerprints.

A file is written beside its place and renamed, so it is there whole or not at all, also when two
jobs write it at once.
"""

import contextlib
import glob
import hashlib
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pyarrow takes a while to import, and every job re-reads the workflow
    import pyarrow as pa


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
    except OSError as error:
        if error.filename in (None, str(temporary)):  # a full disk names no file
            error.filename = str(path)
        raise
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
