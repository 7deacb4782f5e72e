"""What the file system tells of files of data, asked alike here and where a provider's program runs."""

from pathlib import Path
from typing import NamedTuple


class Status(NamedTuple):
    """Of a file: bytes, times of change of its content and of itself in ns, inode.

    A copy that keeps size and time of content differs in the other two.
    """

    size: int
    changed: int
    altered: int
    inode: int


def status_of(path: Path) -> Status:
    found = path.stat()
    return Status(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def parts_of(path: Path) -> list[Path]:
    """A file itself, or those of a folder that `save_to_disk` wrote, without caches of `datasets`."""
    if not path.is_dir():
        return [path]
    found = sorted(part for part in path.rglob("*") if part.is_file())
    return [part for part in found if not part.name.startswith(("cache-", "."))]
