"""Reads files named on the command line: plain or gzipped, a pipe such as `<(…)`, or `-`.

Gzip is recognized by its first bytes, as a pipe has no suffix. A file that was named by mistake is not
read for ever: a pipe without a writer, a device, or a file that unpacks to far more.
"""

import codecs
import contextlib
import errno
import gzip
import io
import os
import stat
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from evaluation.errors import EvaluationError
from evaluation.json_text import load_json
from evaluation.wording import near_path, reason_of

STANDARD = Path("-")
"""Means standard input, or standard output."""

LONGEST_LINE = 1 << 26
"""Bytes of a line; a longer one is not text (but a disk image, or /dev/zero)."""

LARGEST = 1 << 32
"""Bytes of all lines together, unpacked."""

PATIENCE = 30.0
"""Seconds in which a pipe must get a writer."""

_GZIP = b"\x1f\x8b"


def read_lines(
    path: Path, kind: type[EvaluationError], expected: str
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that the user names; raise `kind` if it cannot be read or is damaged.

    Args:
        path: A file, plain or gzipped; a pipe; or `-` for standard input.

    Yields:
        Number of the line, from 1 on, and its bytes with the line break.
    """
    try:
        with _opened(path) as file:
            number = size = 0
            while line := file.readline(LONGEST_LINE + 1):
                number, size = number + 1, size + len(line)
                if len(line) > LONGEST_LINE:
                    raise kind(
                        f"{path}: line {number} has more than {LONGEST_LINE >> 20} MiB; give {expected}"
                    )
                if size > LARGEST:
                    raise kind(f"{path}: more than {LARGEST >> 30} GiB; split the file")
                yield number, line
    except FileNotFoundError:
        raise kind(
            f"{path}: no such file{near_path(path, Path.is_file)}; give {expected}"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise kind(f"{path}: damaged gzip data ({error}); compress it again") from None
    except OSError as error:
        raise kind(f"{path}: cannot be read ({reason_of(error)}); give {expected}") from None


def read_json(line: bytes, place: str, kind: type[EvaluationError]) -> Any:
    """Return the JSON value of a line, without a byte-order mark at its start; raise `kind`."""
    try:
        return load_json(line.removeprefix(codecs.BOM_UTF8))  # Windows writes it first
    except UnicodeDecodeError as error:
        raise kind(f"{place}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except ValueError as error:
        reason = getattr(error, "msg", error)  # without json's own line number
        raise kind(f"{place}: not valid JSON ({reason}); one object on each line") from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    if path == STANDARD:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "there is no standard input")
        source: Any = contextlib.nullcontext(sys.stdin.buffer)
    else:
        source = _open(path)
    with source as raw:
        file = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
        yield gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP else file


def _open(path: Path) -> BinaryIO:
    mode = path.stat().st_mode
    if stat.S_ISSOCK(mode):
        raise OSError(errno.EINVAL, "it is a socket, not a file")
    return _open_pipe(path) if stat.S_ISFIFO(mode) else open(path, "rb")


def _open_pipe(path: Path) -> BinaryIO:
    """Open a pipe in another thread, as that waits for a writer; after a while, open it as a writer."""
    opened: list[BinaryIO] = []
    waiting = threading.Thread(target=lambda: opened.append(path.open("rb")), daemon=True)
    waiting.start()
    waiting.join(PATIENCE)
    if not opened:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # lets the thread continue
        waiting.join()
        opened.pop().close()
        raise OSError(errno.ETIMEDOUT, "it is a pipe, and nobody writes to it")
    return opened[0]
