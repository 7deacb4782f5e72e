"""Reads files and archives of the score store as bytes, and sets damaged ones aside."""

import contextlib
import errno
import logging
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,  # for an encryption bit; NotImplementedError for a method
)
"""Exceptions that zipfile raises for damaged bytes."""


def archived_names(archive: Path) -> list[str]:
    """Return the names of an archive's files; none if it is missing or damaged, which reading reports."""
    try:
        with _damage_as_error(), zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except (FileNotFoundError, _DamagedError):
        return []


def file_bytes(path: Path) -> bytes | None:
    """Return a file's bytes; None if it is missing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def member_bytes(archive: Path, name: str) -> bytes | None:
    """Return the bytes of a file in an archive, None if missing or damaged; set unlistable ones aside."""
    try:
        with _damage_as_error(), zipfile.ZipFile(archive) as opened:
            known = name in opened.namelist()
            try:
                with _damage_as_error():
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
    """A file is not an archive, or has changed since it was written."""


@contextlib.contextmanager
def _damage_as_error() -> Iterator[None]:
    """Turn all exceptions for damaged bytes into `_DamagedError`; other errors of reading pass."""
    try:
        yield
    except _BROKEN as error:
        raise _DamagedError(str(error)) from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # raised for a position before the start of the file
            raise
        raise _DamagedError(str(error)) from None


def set_aside(path: Path) -> None:
    """Rename a damaged file, so that no job reads it again."""
    log.warning("%s is damaged; set aside, and scored again where nothing else has it", path)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path.with_suffix(".damaged"))
