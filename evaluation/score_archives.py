"""Archives and files of the score store as bytes; what is damaged is one error, and set aside."""

import contextlib
import errno
import logging
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from evaluation.regular_files import open_regular

log = logging.getLogger(__name__)

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,  # said of a bit that means encryption; of a method, NotImplementedError
)
"""What zipfile raises for damaged bytes."""


def archived_names(archive: Path) -> list[str]:
    """Return the names in an archive.

    Args:
        archive: A file that others may set aside meanwhile.

    Returns:
        Names; none if it is gone, or damaged, which reading a score of it then reports.
    """
    try:
        with _damage_told(), open_regular(archive) as file, zipfile.ZipFile(file) as opened:
            return opened.namelist()
    except (FileNotFoundError, _DamagedError):
        return []


def file_bytes(path: Path) -> bytes | None:
    """Return a file's bytes.

    Args:
        path: A file that may not be there.

    Returns:
        All of it; no bytes of a pipe or device, which are damaged; None if there is no file.
    """
    try:
        with _damage_told(), open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except _DamagedError:
        return b""


def member_bytes(archive: Path, name: str) -> bytes | None:
    """Return what an archive has under a name; an archive that cannot be listed is set aside.

    Args:
        archive: A file that others may set aside meanwhile.
        name: Name of a file in it.

    Returns:
        The file's bytes; None if it is not there, or damaged.
    """
    try:
        with _damage_told(), open_regular(archive) as file, zipfile.ZipFile(file) as opened:
            known = name in opened.namelist()
            try:
                with _damage_told():
                    return opened.read(name) if known else None
            except _DamagedError as error:
                log.warning("%s: %s in it is damaged (%s)", archive, name, error)
                return None
    except FileNotFoundError:  # another job has just set it aside
        return None
    except _DamagedError:
        set_aside(archive)
        return None


class _DamagedError(Exception):
    """Bytes that are no archive, or not the one that was written."""


@contextlib.contextmanager
def _damage_told() -> Iterator[None]:
    """One exception for all that zipfile raises for damaged bytes; what cannot be read is another."""
    try:
        yield
    except _BROKEN as error:
        raise _DamagedError(str(error)) from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # said of a place before the file's beginning
            raise
        raise _DamagedError(str(error)) from None


def set_aside(path: Path) -> None:
    """Rename a damaged file, so that nobody reads it again.

    Args:
        path: A file that others may set aside meanwhile.
    """
    log.warning("%s is damaged; set aside, and scored again where nothing else has it", path)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path.with_suffix(".damaged"))
