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
    """Return the text of a regular file.

    Args:
        path: A file in UTF-8.

    Raises:
        OSError: When it cannot be read, or is a pipe, socket or device.
        ValueError: When it is not UTF-8.
    """
    with open_regular(path) as file:
        return file.read().decode()


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file to read its bytes.

    Opening a pipe without a writer would wait for ever.

    Args:
        path: A regular file, or a link to one.

    Returns:
        The open file, which the caller closes.

    Raises:
        OSError: When it cannot be read, or is a pipe, socket or device.
    """
    check_regular(path)
    return open(path, "rb")


def check_regular(path: Path) -> None:
    """Check that a path is a regular file.

    Args:
        path: A path; links are followed.

    Raises:
        OSError: When it does not exist, or is a folder, pipe, socket or device.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        reason = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(reason, f"it is {FILE_KINDS[stat.S_IFMT(mode)]}, not a file", str(path))
