"""Records of what each step made, and from what: `.made/<step>-<key>.json` beside the step's outputs.

The key is a fingerprint of everything that the outputs depend on. Whether something has to be made is
whether a record with its present key exists, and is intact: every output is as the step left it. What
is made again gets the next number (`<step>-<key>-2.json`), and a step that has finished removes its
older records. So nobody who reads records changes one.

A step that failed permanently also leaves a record, with its error: others continue without it.
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


class Made(NamedTuple):
    """What a step made: its files, or the sentence of a permanent error, and values for those who read it."""

    files: Iterable[Path] = ()
    error: str | None = None
    about: Mapping[str, Any] = {}


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


def record_path(folder: Path, step: str, name: str) -> Path:
    """Return the path of a step's record; `name` is its key, with a number from the second on."""
    return folder / FOLDER / f"{step}-{name}.json"


def records_of(folder: Path, step: str) -> dict[str, Record | None]:
    """Return a step's records by name, the newest last; None for one that is damaged."""
    paths = {path: _changed(path) for path in (folder / FOLDER).glob(f"{step}-*.json")}
    ordered = sorted(paths, key=lambda path: (paths[path], path.name))
    return {path.stem.removeprefix(f"{step}-"): _read(path) for path in ordered}


def read_record(folder: Path, step: str) -> Record | None:
    """Return a step's newest record, whatever it was made from; None if there is none, or a damaged one."""
    records = list(records_of(folder, step).values())
    return records[-1] if records else None


def write_record(
    folder: Path,
    step: str,
    key: str,
    outputs: Iterable[Path] = (),
    *,
    name: str | None = None,
    error: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Record:
    """Record a step that is done, or failed permanently, and remove its older records.

    Args:
        key: Fingerprint of everything that its outputs depend on.
        outputs: Files that the step has made; they must exist.
        name: Name of the record if it is not the key.
        about: JSON values that the step itself reads later.
    """
    files = {os.path.relpath(path, folder): _file_state(path) for path in outputs}
    record = Record(key=key, files=files, error=error, about=about or {})
    path = record_path(folder, step, name or key)
    write_json(path, {"key": key, "error": error, "files": files, "about": record.about})
    for older in (folder / FOLDER).glob(f"{step}-*.json"):
        if older != path:
            older.unlink(missing_ok=True)
    return record


def recorded_error(folder: Path, *steps: str) -> str | None:
    """Return the error of the first of these steps that failed permanently in a folder; None if none did."""
    records = (read_record(folder, step) for step in steps)
    return next((record.error for record in records if record and record.error), None)


def is_intact(record: Record, folder: Path) -> bool:
    """Return whether every output is unchanged since the step made it.

    A file of the same size and modification time counts as unchanged; if only the time differs (it was
    copied or touched), its checksum is compared.
    """
    return all(_is_same(folder / name, state) for name, state in record.files.items())


def _read(path: Path) -> Record | None:
    try:
        return _RECORD.validate_json(path.read_text(encoding="utf-8"), strict=True)
    except (OSError, ValueError):
        return None


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # another job has finished
        return 0


def _file_state(path: Path) -> FileState:
    status = path.stat()
    return FileState(status.st_size, status.st_mtime_ns, file_checksum(path))


def _is_same(path: Path, state: FileState) -> bool:
    try:
        status = path.stat()
        if not path.is_file() or status.st_size != state.size:
            return False
        return status.st_mtime_ns == state.changed or file_checksum(path) == state.checksum
    except OSError:
        return False
