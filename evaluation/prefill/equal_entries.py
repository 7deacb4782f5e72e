"""Entries of other tokenizers' caches that are equal, as where the same tokenizer has another path or name.

An entry's definition names its tokenizer by content. So an entry with the same definition, made from the
same data, need not be made again: its files are linked.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import CacheError
from evaluation.prefill.entries import (
    check_files,
    is_current,
    new_entry,
    read_meta,
    state_in,
    write_meta,
)

log = logging.getLogger(__name__)


def is_there(
    folder: Path,
    definition: str,
    is_unchanged: Callable[[Any], bool],
    own: Mapping[str, Any],
    same: Mapping[str, Any] | None = None,
) -> bool:
    """Return whether an entry is current, or could be made from an equal one in another cache folder.

    Args:
        folder: `<cache>/<tokenizer>/<kind>/<name>`.
        is_unchanged: Takes the stored state of the files that the entry was made from.
        own: Keys of meta.json that this tokenizer has of its own, such as its name.
        same: Keys that must be equal besides the definition, such as the window.
    """
    if is_current(folder, definition, is_unchanged):
        return True
    for other, meta in _equal(folder, definition):
        is_same = all(meta.get(key) == value for key, value in (same or {}).items())
        if is_same and is_unchanged(state_in(meta)) and _is_taken(folder, other, {**meta, **own}):
            log.info("%s: taken from %s", folder, other)
            return True
    return False


def _equal(folder: Path, definition: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield undamaged entries of the same definition, with their meta.json."""
    cache, inside = folder.parents[2], Path(folder.parent.name, folder.name)
    for home in sorted(cache.iterdir()) if cache.is_dir() else ():
        if home == folder.parents[1] or not (home / inside).is_dir():
            continue
        try:
            meta = read_meta(home / inside)
            if meta.get("definition") == definition:
                check_files(home / inside, meta, tuple(meta["checksum"]))
                yield home / inside, meta
        except CacheError:  # it matters only to its own stage, which names it
            continue


def _is_taken(folder: Path, other: Path, meta: Mapping[str, Any]) -> bool:
    """Link or copy another entry's files; return False if it has vanished meanwhile."""
    names = list(meta["checksum"])
    try:
        with new_entry(folder) as building:
            for name in names:
                _link(other / name, building / name)
            write_meta(building, meta, names)
    except FileNotFoundError:
        return False
    return True


def _link(source: Path, target: Path) -> None:
    """Link a file, which is never written again; copy it where it belongs to another user or disk."""
    try:
        if source.stat().st_uid == os.getuid():
            os.link(source, target)
            return
    except FileNotFoundError:
        raise
    except OSError as error:
        log.debug("%s is copied, as it cannot be linked: %s", source, error)
    shutil.copyfile(source, target)
