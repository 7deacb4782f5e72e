"""Files of requests, in JSONL: read once, line by line, every row checked.

A row holds either two strings, `context` and `continuation`, or two lists of token ids,
`context_tokens` and `continuation_tokens`, and nothing else. A file may be a pipe, as the shell's
`<(…)` is, or `-` for standard input, and gzip is told by its first bytes: a pipe has no suffix.
"""

import contextlib
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from evaluation.errors import ScoringError

STANDARD = Path("-")
"""Stands for standard input, or standard output."""

LONGEST_LINE = 1 << 28
"""Bytes; what is longer is no file of requests (a disk's image, or /dev/zero)."""

TEXT = {"context", "continuation"}
TOKENS = {"context_tokens", "continuation_tokens"}

_GZIP = b"\x1f\x8b"

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """Reads and checks every line; raises ScoringError naming the first that is wrong."""
    rows = [_checked(line, f"{path}: line {number}") for number, line in _lines(path)]
    if not rows:
        raise ScoringError(
            f"{path}: holds no requests; give JSONL, one object on each line (a pipe is empty where "
            "the program before it failed)"
        )
    return rows


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with _opened(path) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ScoringError(
                        f"{path}: line {number} has more than {LONGEST_LINE >> 20} MiB; give JSONL, "
                        "one object on each line"
                    )
                yield number, line
    except FileNotFoundError:
        raise ScoringError(f"{path}: no such file; give a JSONL file of requests") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ScoringError(f"{path}: damaged gzip data ({error}); compress it again") from None
    except OSError as error:
        raise ScoringError(
            f"{path}: cannot be read ({error.strerror or error}); make it readable"
        ) from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    if path == STANDARD:
        if sys.stdin is None:
            raise ScoringError("-: there is no standard input; give a file")
        source: Any = contextlib.nullcontext(sys.stdin.buffer)
    else:
        source = open(path, "rb")  # noqa: SIM115
    with source as raw:
        file = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
        yield gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP else file


def _checked(line: bytes, place: str) -> Row:
    try:
        row = json.loads(line.decode("utf-8"), object_pairs_hook=_without_twice)
    except UnicodeDecodeError as error:
        raise ScoringError(f"{place}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except _TwiceError as error:
        raise ScoringError(f"{place}: the key {error} is there twice; leave one out") from None
    except (ValueError, RecursionError) as error:
        raise ScoringError(f"{place}: not valid JSON ({error}); one object on each line") from None
    if not isinstance(row, dict) or row.keys() not in (TEXT, TOKENS):
        raise ScoringError(
            f"{place}: expected the keys context and continuation, or context_tokens and "
            f"continuation_tokens, and no others; found {_found(row)}"
        )
    is_right = _is_text if row.keys() == TEXT else _is_tokens
    for key, value in row.items():
        if not is_right(value):
            kind = "a string of Unicode characters" if row.keys() == TEXT else "a list of token ids"
            raise ScoringError(f"{place}: {key} must be {kind}")
        if not value and key.startswith("continuation"):
            raise ScoringError(f"{place}: {key} is empty, there is nothing to score; leave it out")
    return row


class _TwiceError(ValueError):
    """A key that an object has twice, of which JSON readers keep the last without a word."""


def _without_twice(pairs: list[tuple[str, Any]]) -> Row:
    row: Row = {}
    for key, value in pairs:
        if key in row:
            raise _TwiceError(repr(key[:40]))
        row[key] = value
    return row


def _found(row: Any) -> str:
    """What stands in a line, shortened: a key can be as long as the file."""
    if not isinstance(row, dict):
        return type(row).__name__
    names = [name[:40] for name in list(row)[:5]] + ["…"] * (len(row) > 5)
    return ", ".join(names) or "none"


def _is_text(value: Any) -> bool:
    """Whether it is a string without halves of surrogate pairs, which no tokenizer takes."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)
