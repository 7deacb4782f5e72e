"""An entry of the cache: a folder that appears complete, or not at all.

An entry is built in a temporary folder next to its place and then renamed. So an interrupted or a
second, simultaneous prefill never mixes files. If two finish, the first entry stays. Its meta.json
holds a checksum of every file, and one of itself.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import CacheError
from evaluation.files import file_checksum, load_json, temporary_path, write_json

META = "meta.json"

META_CHECKSUM = "meta_checksum"
"""Key of a meta.json that holds its own checksum."""


def read_meta(folder: Path) -> dict[str, Any]:
    """Return `folder/meta.json`, checked against its own checksum."""
    path = folder / META
    try:
        meta = load_json(path.read_bytes())
        is_whole = isinstance(meta["checksum"], dict)
        is_whole = is_whole and meta[META_CHECKSUM] == meta_checksum(meta)
    except FileNotFoundError:
        raise CacheError(
            f"{folder} is not prefilled (no {META}); run `snakemake prefill`"
        ) from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise damaged(path, str(error)) from None
    if not is_whole:
        raise damaged(path, "it was changed after it was written")
    return dict(meta)


def meta_checksum(meta: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a meta.json without this very key, whatever its layout."""
    content = {key: value for key, value in meta.items() if key != META_CHECKSUM}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_files(folder: Path, meta: Mapping[str, Any], names: Sequence[str]) -> None:
    """Check that files of an entry exist and are as its meta.json says."""
    for name in names:
        try:
            checksum = file_checksum(folder / name)
        except OSError as error:
            raise damaged(folder / name, str(error.strerror)) from None
        if checksum != meta["checksum"].get(name):
            raise damaged(folder / name, "its checksum is not the one in meta.json")


def check_entry(folder: Path, definition: str) -> dict[str, Any]:
    """Check that an entry is complete, and of this definition; return its meta.json."""
    meta = read_meta(folder)
    check_files(folder, meta, tuple(meta["checksum"]))
    if meta.get("definition") != definition:
        raise CacheError(
            f"{folder} was made under other settings than those of the configuration; run `snakemake prefill`"
        )
    return meta


def is_intact(folder: Path, meta: Mapping[str, Any]) -> bool:
    """Return whether an entry's files are as its meta.json says; those that are not older are read."""
    try:
        written, now = (folder / META).stat().st_mtime_ns, time.time_ns()
        files = {folder / name: checksum for name, checksum in meta["checksum"].items()}
        newer = [path for path in files if not path.stat().st_mtime_ns <= written <= now]
        return all(file_checksum(path) == files[path] for path in newer)
    except OSError:
        return False


def is_current(folder: Path, definition: str, state_now: Callable[[Any], Any]) -> bool:
    """Return whether there is an undamaged entry of this definition, with the state of sources of today.

    `state_now` takes the stored state, and returns that of today (`sources.item_state`).
    """
    try:
        meta = check_entry(folder, definition)
    except CacheError:
        return False
    return bool(state_now(state_in(meta)) == state_in(meta))


@contextlib.contextmanager
def new_entry(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes the entry at the end; it is removed on an error.

    `write_meta` has to write into it last.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = temporary_path(folder)
    building.mkdir()
    try:
        yield building
        _install(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def write_meta(building: Path, meta: Mapping[str, Any]) -> None:
    """Write meta.json as the last file of an entry, with the checksums of the others and its own."""
    names = sorted(path.name for path in building.iterdir())
    for name in names:
        with open(building / name, "rb+") as file:
            os.fsync(file.fileno())
    checksums = {name: file_checksum(building / name) for name in names}
    content = {**meta, "checksum": checksums}
    write_json(building / META, {**content, META_CHECKSUM: meta_checksum(content)})


def counted(asked: int, used: int, **left_out: int) -> dict[str, Any]:
    """Return how many items there are and are used, and how many are left out by reason, for meta.json."""
    reasons = {reason: count for reason, count in left_out.items() if count > 0}
    return {"asked": asked, "used": used, "left_out": reasons}


def state_in(meta: Mapping[str, Any]) -> Any:
    """Return the stored state of the files that an entry was made from, see `sources.item_state`."""
    return meta.get("source", {}).get("state")


def _install(building: Path, folder: Path) -> None:
    """Rename an entry into place, and an older one away; the same one by another process stays."""
    meta, aside = read_meta(building), building.with_suffix(".old.tmp")
    while not is_current(folder, meta["definition"], lambda _: state_in(meta)):
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            os.rename(folder, aside)
        if aside.is_symlink():  # the entry was a link; its target is not ours to remove
            aside.unlink()
        shutil.rmtree(aside, ignore_errors=True)
        try:
            os.rename(building, folder)
        except OSError:
            if not os.path.lexists(folder):
                raise


def damaged(path: Path, what: str) -> CacheError:
    """Return the error for a damaged file."""
    return CacheError(
        f"{path} is damaged: {what}; delete {path.parent} and run `snakemake prefill`"
    )
