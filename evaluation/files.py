"""Writes files atomically.

A file is written under a temporary name in its folder and then renamed. So it is complete or absent,
also when two jobs write it at once. A link with its name is replaced, and the link's target stays
unchanged, as others may share it; links to folders are followed. What is no file, such as /dev/null, is
never replaced. New files follow the umask.
"""

import contextlib
import errno
import glob
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.errors import OutputError

if TYPE_CHECKING:  # pyarrow is slow to import, and every job reads the workflow again
    import pyarrow as pa


_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync a folder."""


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Provide a temporary path that is renamed to `path` at the end, or removed on error.

    Raises:
        OutputError: When `path` is a folder or a device, which stays unchanged.
    """
    if path.exists() and not path.is_file():
        raise OutputError(f"{path}: is not a file; name another path")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        nameless = error.errno in (errno.ENOSPC, errno.EDQUOT)  # as Python raises them
        if nameless or error.filename == str(temporary):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a renaming durable, which fsync of the file does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def temporary_path(path: Path) -> Path:
    """Return a hidden temporary path; remove those that killed writers left.

    Returns:
        A path in the same folder; its name has the host and process id.
    """
    name = path.name
    for left in path.parent.glob(f".{glob.escape(name)}.*.tmp"):
        with contextlib.suppress(FileNotFoundError):  # another writer removed it first
            if _is_abandoned(left):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    writer = f"{socket.gethostname()}+{os.getpid()}+{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{name}.{writer}.tmp")


def is_temporary(path: Path) -> bool:
    """Return whether a name begins with `.` and ends with `.tmp`: another job may be writing it."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _is_abandoned(temporary: Path) -> bool:
    """Return whether its writer has ended, or (of another host) whether it is older than a day."""
    age = time.time() - temporary.stat().st_mtime
    writer = temporary.name.rsplit("+", 2)
    if len(writer) == 3 and writer[0].endswith(f".{socket.gethostname()}"):
        return age > 60 and not Path("/proc", writer[1]).exists()
    return age > 24 * 3600


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write standard JSON, atomically; raise ValueError for NaN or infinity."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_bytes(as_utf8(text + "\n"))


def as_utf8(text: str) -> bytes:
    """Return JSON as UTF-8; lone surrogates, which UTF-8 lacks, are escaped."""
    return text.encode("utf-8", "backslashreplace")


def write_jsonl(path: Path, rows: Iterable[Any]) -> int:
    """Write one JSON value a line, atomically, and return their number; raise ValueError as `write_json`."""
    count = 0
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        for row in rows:
            file.write(as_utf8(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"))
            count += 1
    return count


def write_parquet(path: Path, table: "pa.Table") -> None:
    """Write a table with checksums of its pages, atomically."""
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
