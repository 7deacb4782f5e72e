"""Fits text to the width and the characters of a terminal; in a pipe or file, lines keep their length.

Imports only the standard library.
"""

from __future__ import annotations

import locale
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from evaluation.escaping import printable

_SPACE = "\N{NO-BREAK SPACE}"
_CHOSEN = ("PYTHONIOENCODING", "PYTHONUTF8")
"""Variables with which a user chooses the encoding of streams, whatever the locale is."""


def spell_signs() -> None:
    """Let standard streams write our signs in ASCII where the locale lacks them, and escape other characters.

    In the locale C, Python writes UTF-8 nevertheless: there names of files keep their bytes.
    """
    is_c = locale.setlocale(locale.LC_CTYPE) in ("C", "POSIX")
    is_guessed = sys.flags.utf8_mode and is_c and not any(map(os.environ.get, _CHOSEN))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            if is_guessed:
                stream.reconfigure(encoding="ascii", errors="spelled_utf8")
            else:
                stream.reconfigure(errors="spelled")


def as_shown(text: str, stream: TextIO | None) -> str:
    """Return text as a stream (None: closed) will show it, so that its width can be counted."""
    encoding, errors = getattr(stream, "encoding", None), str(getattr(stream, "errors", None))
    if text.isascii() or not encoding or not errors.startswith("spelled"):
        return text
    return text.encode(encoding, errors).decode("utf-8" if errors == "spelled_utf8" else encoding)


def terminal_width(stream: TextIO | None) -> int | None:
    """Return the columns of the terminal that a stream (None: closed) writes to; None if it is none."""
    is_terminal = stream is not None and stream.isatty()
    return shutil.get_terminal_size().columns if is_terminal else None


def show(text: str, stream: TextIO | None = None) -> None:
    """Print text, with lines wrapped on a terminal."""
    stream = stream or sys.stdout
    print(fitted(as_shown(text, stream), terminal_width(stream)), file=stream, flush=True)


def fitted(text: str, width: int | None) -> str:
    """Return text with lines wrapped at a width (None: not), not within a `command`; the rest indented."""
    if width is None:
        return text
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    whole = re.sub(r"`[^`]*`", lambda command: command[0].replace(" ", _SPACE), line)
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    lines = textwrap.wrap(
        whole, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(_SPACE, " ")


def align(rows: Sequence[Sequence[str]], *, keys: int = 1, is_whole: bool = False) -> str:
    """Return rows of cells as aligned columns, the first row underlined.

    Args:
        keys: Number of first columns, which each block repeats if the table is split.
        is_whole: Whether it is for a file, which no terminal limits.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if not is_whole:
        rows = [[as_shown(cell, sys.stdout) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    room = None if is_whole else terminal_width(sys.stdout)
    blocks = _blocks(widths, keys, room)
    return "\n\n".join(_block(rows, widths, columns) for columns in blocks)


def _blocks(widths: Sequence[int], keys: int, room: int | None) -> Iterator[list[int]]:
    """Yield the columns of each block."""
    first = list(range(keys))
    columns = list(first)
    for column in range(keys, len(widths)):
        wide = sum(widths[column] + 2 for column in columns) + widths[column]
        if room is not None and wide > room and columns != first:
            yield columns
            columns = list(first)
        columns.append(column)
    yield columns


def _block(rows: Sequence[Sequence[str]], widths: Sequence[int], columns: Sequence[int]) -> str:
    lines = ["  ".join(f"{row[i]:<{widths[i]}}" for i in columns).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * widths[i] for i in columns))
    return "\n".join(lines)
