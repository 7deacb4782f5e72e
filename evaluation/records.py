"""Records of what each step of the workflow made, and from what.

A finished step writes `.made/<step>.json` in the folder of its outputs. The record has the step's key
(a fingerprint of everything that its outputs depend on) and the state of every output. A run compares
the key in each record with the key that the present configuration gives. Only steps that differ run
again; the age of files and Snakemake's metadata are ignored.

A step that failed permanently also writes a record, with its error: other steps continue without it,
and every run tries it again.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from evaluation.files import file_checksum, fingerprint, unordered, write_json

FOLDER = ".made"

RECORDED = 3
"""Exit code of a step that failed permanently and recorded it: other steps continue without it."""


class FileState(NamedTuple):
    """State of an output: size in bytes, modification time in ns, SHA-256 in hex."""

    size: int
    changed: int
    checksum: str


@dataclass(frozen=True, kw_only=True)
class Record:
    """A step's record; `files` are relative to its folder, `about` has further values of the step."""

    key: str
    files: Mapping[str, FileState] = field(default_factory=dict)
    error: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Fingerprint of the outputs' content, on which the steps that read them depend."""
        checksums = {name: state.checksum for name, state in self.files.items()}
        return fingerprint([self.key, unordered(checksums), self.error])


_RECORD = TypeAdapter(Record)


def record_path(folder: Path, step: str) -> Path:
    """Return the path of a step's record."""
    return folder / FOLDER / f"{step}.json"


def write_record(
    folder: Path,
    step: str,
    key: str,
    outputs: Iterable[Path] = (),
    *,
    error: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Record:
    """Record a step that is done, or failed permanently.

    Args:
        key: Fingerprint of everything that its outputs depend on.
        outputs: Files in `folder` that the step has made; they must exist.
        about: JSON values that the step itself reads later.
    """
    files = {os.path.relpath(path, folder): _file_state(path) for path in outputs}
    record = Record(key=key, files=files, error=error, about=about or {})
    content = {"key": key, "error": error, "files": files, "about": record.about}
    write_json(record_path(folder, step), content)
    return record


def read_record(folder: Path, step: str) -> Record | None:
    """Return a step's record; None if it is missing or damaged: the step then runs again."""
    try:
        return _RECORD.validate_json(
            record_path(folder, step).read_text(encoding="utf-8"), strict=True
        )
    except (OSError, ValueError):
        return None


def recorded_error(folder: Path, *steps: str) -> str | None:
    """Return the error of the first of these steps that failed permanently in a folder; None if none did."""
    records = (read_record(folder, step) for step in steps)
    return next((record.error for record in records if record and record.error), None)


def _file_state(path: Path) -> FileState:
    status = path.stat()
    return FileState(status.st_size, status.st_mtime_ns, file_checksum(path))


def is_intact(record: Record, folder: Path) -> bool:
    """Return whether every output is unchanged since the step made it.

    A file of the same size and modification time counts as unchanged; if only the time differs (it was
    copied or touched), its checksum is compared.
    """
    return all(_is_same(folder / name, state) for name, state in record.files.items())


def _is_same(path: Path, state: FileState) -> bool:
    try:
        status = path.stat()
        if not path.is_file() or status.st_size != state.size:
            return False
        return status.st_mtime_ns == state.changed or file_checksum(path) == state.checksum
    except OSError:
        return False
