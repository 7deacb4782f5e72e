"""One entry of the cache: a folder that appears whole, or not at all.

An entry is built beside its place and renamed, so that an interrupted or a second, simultaneous
prefill never leaves files that do not belong together. Of two that finish, the first stays.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.command_hints import snakemake
from evaluation.errors import CacheError
from evaluation.files import file_checksum, temporary_path, write_json
from evaluation.prefill.caches import (
    META,
    META_CHECKSUM,
    check_files,
    meta_checksum,
    read_meta,
)
from evaluation.records import is_intact, read_record, write_record

STEP = "prefill"
"""Name of an entry's record, whose key is the entry's definition."""


def is_current(
    folder: Path, definition: str, is_unchanged: Callable[[Any], bool] = lambda state: True
) -> bool:
    """Whether an entry is there, undamaged, of this definition, and made of unchanged files.

    `is_unchanged` is asked about what the entry keeps of these files. An entry that is current has its
    record afterwards, which says what the entry itself says.
    """
    try:
        meta = check_entry(folder, definition)
    except CacheError:
        return False
    if not is_unchanged(_state(meta)):
        return False
    record = read_record(folder, STEP)
    if (
        record is None
        or (record.key, record.about) != (definition, _about(meta))
        or not is_intact(record, folder)
    ):
        _record(folder, definition, meta, tuple(meta["checksum"]))
    return True


def check_entry(folder: Path, definition: str) -> dict[str, Any]:
    """The meta.json of a whole entry of this definition; raises CacheError for any other."""
    meta = read_meta(folder)
    check_files(folder, meta, tuple(meta["checksum"]))
    if meta.get("definition") != definition:
        raise CacheError(
            f"{folder} was made under other settings than those of the configuration; run `{snakemake('prefill')}`"
        )
    return meta


@contextlib.contextmanager
def new_entry(folder: Path) -> Iterator[Path]:
    """Gives an empty folder that takes the entry's place at the end; removed on error."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = temporary_path(folder)
    building.mkdir()
    try:
        yield building
        _install(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def write_meta(building: Path, meta: dict[str, Any], names: Sequence[str]) -> None:
    """Writes meta.json as the last file of an entry, with the named files' checksums and its own."""
    for name in names:
        with open(building / name, "rb+") as file:
            os.fsync(file.fileno())
    checksums = {name: file_checksum(building / name) for name in names}
    content = {key: value for key, value in meta.items() if key != META_CHECKSUM}
    content["checksum"] = checksums
    write_json(building / META, {**content, META_CHECKSUM: meta_checksum(content)})
    _record(building, meta["definition"], meta, names)


def _record(folder: Path, definition: str, meta: Mapping[str, Any], names: Sequence[str]) -> None:
    files = [folder / name for name in (*names, META)]
    write_record(folder, STEP, definition, files, about=_about(meta))


def _about(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What a run asks of an entry without reading it."""
    asked = {"asked": meta.get("asked_definition"), "content": meta.get("asked_content")}
    return {"state": _state(meta), **asked}


def _state(meta: Mapping[str, Any]) -> Any:
    """What an entry keeps of the files that it was made of, see `states.are_unchanged`."""
    return meta.get("source", {}).get("state")


def _install(building: Path, folder: Path) -> None:
    """Renames an entry into place, moving away what is there unless it is the same entry."""
    meta = read_meta(building)
    while True:
        try:
            os.rename(building, folder)
        except OSError:
            if not folder.exists() and not folder.is_symlink():
                raise
        else:
            return
        if is_current(folder, meta["definition"], lambda state: bool(state == _state(meta))):
            return
        aside = building.with_suffix(".old.tmp")
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            os.rename(folder, aside)
        if aside.is_symlink():  # the entry was a link; what it leads to is not ours to remove
            aside.unlink()
        shutil.rmtree(aside, ignore_errors=True)
