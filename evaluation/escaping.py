"""Escapes text from data for terminals, CSV and LaTeX, which would interpret parts of it, and for files.

Names in settings need no escaping (`settings/names.py`); strata, ids and providers' metrics do. Signs of
our own that an encoding lacks are spelled in ASCII: `spelled` and `spelled_utf8` are error handlers for it.
"""

import codecs
import re
from functools import partial

_FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet would compute."""

_LONG = re.compile(r"[^\s/]{400,}")
"""A word or part of a path that is too long to be a name."""

_COMMANDS = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


_SIGNS = {
    "…": "...", "─": "-", "–": "-", "—": "-", "−": "-", "×": "x", "·": "*", "±": "+/-", "µ": "u", "Δ": "delta ",
    "²": "^2", "³": "^3", "“": '"', "”": '"', "’": "'", "▲": "^", "▼": "v", "→": "->", "≤": "<=", "≥": ">=", "≈": "~",
    "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
"""Signs in our messages and tables, and what they become where a terminal cannot show them."""


def without_surrogates(text: str) -> str:
    """Return text that a file in UTF-8 can store: `?` takes the place of lone surrogates."""
    return text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return text whose unprintable characters, such as control characters, are escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def printable_lines(text: str) -> str:
    """Return text of several lines, each made printable."""
    return "\n".join(map(printable, text.split("\n")))


def terminal_text(text: str) -> str:
    """Return a printable message in which very long words are cut."""
    cut = _LONG.sub(lambda word: f"{word[0][:100]}… ({len(word[0]):,} characters)", text)
    return printable_lines(cut)


def csv_cell(value: object) -> object:
    """Return a value as a CSV cell that no spreadsheet computes.

    Returns:
        Text that would be computed is prefixed with an apostrophe; numbers stay unchanged.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def latex(text: str) -> str:
    """Return text with TeX's special characters escaped."""
    return printable(text).translate(_COMMANDS)


def _spell(error: UnicodeError, *, others: str) -> tuple[str | bytes, int]:
    """Return our signs in ASCII, and the text after them; `others`: what becomes of other characters.

    Some streams are read as well as written, such as files that stand in for a terminal: other programs write
    bytes there that are no text.
    """
    if not isinstance(error, UnicodeEncodeError):
        return codecs.backslashreplace_errors(error)
    character, end = error.object[error.start], error.start + 1
    if character in _SIGNS:
        return _SIGNS[character], end
    if others == "utf-8" and not "\ud800" <= character <= "\udfff":
        return character.encode(), end
    return character.encode("ascii", "backslashreplace"), end


codecs.register_error("spelled", partial(_spell, others="ascii"))
codecs.register_error("spelled_utf8", partial(_spell, others="utf-8"))
