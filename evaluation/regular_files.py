"""Opens only regular files: reading a pipe or device could wait, or last, for ever."""

import errno
import stat
from io import BufferedReader
from pathlib import Path

FILE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8.

    Raises:
        OSError: When it cannot be read, or is a pipe, socket or device.
    """
    with open_regular(path) as file:
        return file.read().decode()


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file, or a link to one, to read its bytes; the caller closes it.

    Opening a pipe without a writer would wait for ever.

    Raises:
        OSError: When it cannot be read, or is a pipe, socket or device.
    """
    check_regular(path)
    return open(path, "rb")


def check_regular(path: Path) -> None:
    """Check that a path is a regular file.

    Raises:
        OSError: When it does not exist, or is a folder, pipe, socket or device.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        reason = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(reason, f"it is {FILE_KINDS[stat.S_IFMT(mode)]}, not a file", str(path))
