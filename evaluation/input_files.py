"""Reads files of lines that are named on the command line, plain or gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.json_text import load_json
from evaluation.wording import near_path, reason_of

_GZIP = b"\x1f\x8b"


def read_lines(
    path: Path, kind: type[EvaluationError], expected: str
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, which begins with gzip's bytes if it is gzipped; raise `kind`.

    Yields:
        Number of the line, from 1 on, and its bytes with the line break.
    """
    try:
        with open(path, "rb") as file:
            is_packed = file.peek(2)[:2] == _GZIP
            yield from enumerate(gzip.GzipFile(fileobj=file) if is_packed else file, start=1)
    except FileNotFoundError:
        raise kind(
            f"{path}: no such file{near_path(path, Path.is_file)}; give {expected}"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise kind(f"{path}: damaged gzip data ({error}); compress it again") from None
    except OSError as error:
        raise kind(f"{path}: cannot be read ({reason_of(error)}); give {expected}") from None


def read_json(line: bytes, place: str, kind: type[EvaluationError]) -> Any:
    """Return the JSON value of a line; raise `kind` if it is none."""
    try:
        return load_json(line)
    except UnicodeDecodeError as error:
        raise kind(f"{place}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except ValueError as error:
        reason = getattr(error, "msg", error)  # without json's own line number
        raise kind(f"{place}: not valid JSON ({reason}); one object on each line") from None
