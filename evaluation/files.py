"""Atomic files and fingerprints.

A file is written next to its place and renamed, so it is there whole or not at all, also when two
jobs write it at once. A link in its place is replaced and what it points to stays as it is, since
others may write to a shared folder; links to folders are followed. Folders, devices, pipes and sockets
are never replaced. New files follow the umask.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import socket
import stat
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.errors import OutputError
from evaluation.regular_files import FILE_KINDS

if TYPE_CHECKING:  # pyarrow takes a while to import, and every job re-reads the workflow
    import pyarrow as pa


LONGEST_NAME = 160
"""Bytes of a file's name that a hidden path repeats; with host and process they stay below 255."""

_UNNAMED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Faults of a write, which Python raises without the name of the file."""

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""What file systems answer that have no way to make a folder's entries durable."""


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path that is moved into place at the end, or removed on error.

    Args:
        path: Where the file shall be; its folder is made.

    Yields:
        A path in the same folder, to which the file is to be written.

    Raises:
        OutputError: When `path` is a folder, a device, a pipe or a socket, which stays as it is.
        OSError: When it cannot be written; names `path`.
    """
    check_replaceable(path)
    make_folder(path.parent)
    temporary = temporary_path(path)
    try:
        with _naming(path, temporary):
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(path: Path, *, follow: bool = False) -> None:
    """Refuse a path that a file must not be renamed to.

    Args:
        path: A path, whether something is there or not.
        follow: Whether what a link points to counts, not the link itself.

    Raises:
        OutputError: When it is a folder, a device, a pipe or a socket.
    """
    try:
        kind = FILE_KINDS.get(stat.S_IFMT(path.stat(follow_symlinks=follow).st_mode))
    except FileNotFoundError:
        kind = None
    if kind is not None:
        raise OutputError(
            f"{path}: is {kind}, where a file is to be written; name another path or move it away"
        )


def link_target(path: Path) -> Path:
    """Return where a file that the user names is to be written, links followed.

    Args:
        path: Path that the user wrote.

    Returns:
        What a link points to, be it there or not; else the path itself.

    Raises:
        OutputError: When it is a folder, a device, a pipe or a socket.
        OSError: When the path cannot be followed.
    """
    check_replaceable(path, follow=True)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def forget_link(path: Path) -> None:
    """Remove a link from where a log is to be written, which would else go to its target.

    Args:
        path: Path of a log.

    Raises:
        OutputError: When it is no file: to open a pipe would wait for its reader.
    """
    check_replaceable(path)
    if path.is_symlink():
        path.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder and those above it.

    Args:
        folder: A folder, which may be there already.

    Raises:
        OSError: When it cannot be made; names the one that stands in the way.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # raised for a file, or of a link to nothing
        reason = errno.ENOTDIR
        raise NotADirectoryError(reason, os.strerror(reason), str(folder)) from None


@contextlib.contextmanager
def _naming(path: Path, temporary: Path) -> Iterator[None]:
    """Name, in faults of writing the temporary file, the path that the user knows."""
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno in _UNNAMED
        if nameless or str(error.filename) == str(temporary):
            error.filename, error.filename2 = str(path), None
        raise


def _sync_folder(folder: Path) -> None:
    """Make a renaming durable, as a file's own fsync does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def temporary_path(path: Path) -> Path:
    """Return a hidden path to write to before renaming it; remove what killed writers left.

    Args:
        path: Where the file or folder shall be.

    Returns:
        A path in the same folder, which names host and process.
    """
    name = path.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = f"{name[:32]}~{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    for left in path.parent.glob(f".{glob.escape(name)}.*.tmp"):
        with contextlib.suppress(FileNotFoundError):  # another writer was faster
            if _is_abandoned(left):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    writer = f"{socket.gethostname()}+{os.getpid()}+{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{name}.{writer}.tmp")


def without_temporary(text: str) -> str:
    """Return a message of a library in which files have the names that they were to get.

    Args:
        text: A message that may name a path of `temporary_path`.

    Returns:
        The message with the paths that users know.
    """
    return re.sub(r"/\.([^/\s]+)\.[^/\s]+\+\d+\+[0-9a-f]{8}\.tmp", r"/\1", text)


def is_temporary(path: Path) -> bool:
    """Return whether a path is what `temporary_path` makes, which another job may be writing.

    Args:
        path: A path; only its name counts.

    Returns:
        Whether it is hidden and ends with `.tmp`.
    """
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _is_abandoned(temporary: Path) -> bool:
    """Return whether its writer has ended on this host; of another host's, whether it is a day old."""
    age = time.time() - temporary.stat().st_mtime
    writer = temporary.name.rsplit("+", 2)
    if len(writer) == 3 and writer[0].endswith(f".{socket.gethostname()}"):
        return age > 60 and not Path("/proc", writer[1]).exists()
    return age > 24 * 3600


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all.

    Args:
        path: Where the file shall be.
        text: All of its content.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write standard JSON, whole or not at all.

    Args:
        path: Where the file shall be.
        content: A JSON value.

    Raises:
        ValueError: When there is a NaN or infinity in it, which JSON does not have.
    """
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_bytes(as_utf8(text + "\n"))


def as_utf8(text: str) -> bytes:
    """Return JSON as bytes; half of a surrogate pair, which UTF-8 lacks, becomes JSON's escape.

    Args:
        text: A JSON text.

    Returns:
        UTF-8.
    """
    return text.encode("utf-8", "backslashreplace")


def write_jsonl(path: Path, rows: Iterable[Any]) -> int:
    """Write one JSON value a line, whole or not at all.

    Args:
        path: Where the file shall be.
        rows: JSON values; they may be computed as they are written.

    Returns:
        Number of lines.

    Raises:
        ValueError: When there is a NaN or infinity in one, which JSON does not have.
    """
    count = 0
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        for row in rows:
            file.write(as_utf8(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"))
            count += 1
    return count


def write_parquet(path: Path, table: "pa.Table") -> None:
    """Write a table with checksums of its pages, whole or not at all.

    Args:
        path: Where the file shall be.
        table: All of its content.
    """
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
