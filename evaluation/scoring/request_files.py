"""Read files of requests, check every row, and write the rows with their scores.

A row has either two strings, `context` and `continuation`, or two lists of token ids,
`context_tokens` and `continuation_tokens`, and no other key. Answers go to a file, which appears only
once it is complete, or to a pipe, a device or `-`.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from evaluation.errors import OutputError, ScoringError
from evaluation.files import as_utf8, atomic_path, link_target, make_folder
from evaluation.input_files import STANDARD, read_json, read_lines
from evaluation.json_text import is_unicode
from evaluation.output_files import check_replaces_nothing
from evaluation.wording import kind_of, reason_of

TEXT = {"context", "continuation"}
TOKENS = {"context_tokens", "continuation_tokens"}

RequestRow = dict[str, Any]


def read_rows(path: Path) -> list[RequestRow]:
    """Read and check every line of a file of requests, a pipe or `-`: at least one.

    Raises:
        ScoringError: When there is no row, or a row is wrong; it names the first such line.
    """
    lines = read_lines(path, ScoringError, "JSONL, one request on each line")
    rows = [_checked(line, f"{path}: line {number}") for number, line in lines]
    if not rows:
        raise ScoringError(
            f"{path}: holds no requests; give JSONL, one object on each line (a pipe is empty if the "
            "program before it failed)"
        )
    return rows


def _checked(line: bytes, place: str) -> RequestRow:
    row = read_json(line, place, ScoringError)
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


def _found(row: Any) -> str:
    """Return the keys of a row, or its kind, shortened: a key can be as long as the file."""
    if not isinstance(row, dict):
        return kind_of(row)
    names = [name[:40] for name in list(row)[:5]] + ["…"] * (len(row) > 5)
    return ", ".join(names) or "none"


def _is_text(value: Any) -> bool:
    """Return whether a value is a string that a tokenizer takes."""
    return isinstance(value, str) and is_unicode(value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)


def check_output(requests: Path, output: Path) -> None:
    """Check that answers can be written, before any GPU time is spent.

    Makes the folder of the output file.

    Raises:
        OutputError: When answers cannot be written there; it names the path.
    """
    check_replaces_nothing(output, [requests])
    if is_standard_output(output) or _is_written_through(output):
        return
    try:
        folder = link_target(output).parent
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(output, error, "nothing was scored") from None


def write_answers(output: Path, rows: Iterable[RequestRow]) -> int:
    """Write one JSON object a line, taken one by one; return their number."""
    count = 0
    with _opened(output) as file:
        for row in rows:
            file.write(as_utf8(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"))
            count += 1
    return count


def is_standard_output(path: Path) -> bool:
    """Return whether a path is `-`, or the file, pipe or terminal behind this program's output.

    Args:
        path: Where answers go; it need not exist.
    """
    if path == STANDARD:
        return True
    try:
        ours = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # no standard output, or one in memory
        return False
    return path.exists() and os.path.samestat(path.stat(), ours)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    stored = "some rows may have been"
    try:
        if is_standard_output(path):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif _is_written_through(path):
            with open(path, "wb") as file:
                yield file
        else:
            stored = "nothing was"
            with atomic_path(link_target(path)) as temporary, open(temporary, "wb") as file:
                yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_standard_output(path):
            raise  # `| head` has read enough
        raise _unwritable(path, error, f"{stored} written there") from None


def _unwritable(path: Path, error: OSError, stored: str) -> OutputError:
    return OutputError(
        f"{path}: cannot be written ({reason_of(error)}), {stored}; free disk space, or give "
        "--output a path in a folder that can be written to"
    )


def _is_written_through(path: Path) -> bool:
    """Return whether rows go straight into `path`: a device, a pipe, `-`, or an open file in /dev or /proc.

    An entry of /dev/fd looks like the file that is open there; renaming would replace that file, while
    the shell still writes to the old one.
    """
    if path == STANDARD:
        return True
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    return path.is_char_device() or path.is_fifo()
