"""Writes files atomically, fingerprints contents, and reads JSON strictly.

A file is written under a temporary name in its folder and then renamed. So it is complete or absent,
also when two jobs write it at once. A file that has this content already stays as it is. A link with its
name is replaced, and the link's target stays unchanged, as others may share it; links to folders are
followed. What is no file, such as /dev/null, is never replaced. New files follow the umask.
"""

import contextlib
import errno
import filecmp
import glob
import hashlib
import json
import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.errors import EvaluationError, OutputError

if TYPE_CHECKING:  # pyarrow is slow to import, and every job reads the workflow again
    import pyarrow as pa


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
        if path.is_file() and not path.is_symlink() and filecmp.cmp(temporary, path, shallow=False):
            return
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        nameless = error.errno in (errno.ENOSPC, errno.EDQUOT)  # as Python raises them
        if nameless or error.filename == str(temporary):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a hidden temporary path in the same folder; remove those that killed writers left for a day."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(FileNotFoundError):  # another writer removed it first
            if time.time() - left.stat().st_mtime > 24 * 3600:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def is_temporary(path: Path) -> bool:
    """Return whether a name begins with `.` and ends with `.tmp`: another job may be writing it."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


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


def fingerprint(content: Any) -> str:
    """Return the fingerprint of a JSON value; it depends on the order of keys.

    The order can matter: variables are computed in order, and the first verifier may be the primary
    one. If the order of a mapping does not matter, pass it through `unordered`.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(as_utf8(text)).hexdigest()[:16]


def unordered(content: Any) -> Any:
    """Return a JSON value with the keys of all its mappings sorted; lists keep their order."""
    if isinstance(content, Mapping):
        return {key: unordered(content[key]) for key in sorted(content)}
    return [unordered(one) for one in content] if isinstance(content, list | tuple) else content


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_json(text: str | bytes, *, finite: bool = False) -> Any:
    """Return the value of a JSON text.

    Args:
        finite: Whether to refuse NaN and Infinity, which are not valid JSON.

    Raises:
        ValueError: When it is not valid JSON, repeats a key, is nested too deeply, or
            (UnicodeDecodeError) is not UTF-8.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")  # Windows begins a file with a byte-order mark
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_number if finite else None
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:40]!r} appears twice")
    return table


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def read_json(line: bytes, place: str, kind: type[EvaluationError]) -> Any:
    """Return the JSON value of a line; raise `kind` if it is none."""
    try:
        return load_json(line)
    except UnicodeDecodeError as error:
        raise kind(f"{place}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except ValueError as error:
        reason = getattr(error, "msg", error)  # without json's own line number
        raise kind(f"{place}: not valid JSON ({reason}); one object on each line") from None


def without_surrogates(text: str) -> str:
    """Return text that UTF-8 can store: `?` takes the place of half UTF-16 pairs, which JSON can spell."""
    return text.encode(errors="replace").decode()


def is_unicode(text: str) -> bool:
    return without_surrogates(text) == text
