"""Text that comes from data, written where something reads more into it: terminal, CSV, LaTeX.

Names in settings are free of it (`settings/names.py`); strata, ids and a provider's metrics are not.
"""

import re

_FORMULA = ("=", "+", "-", "@")
"""What a cell begins with that a spreadsheet computes."""

_LONG = re.compile(r"[^\s/]{400,}")
"""A word, or a part of a path, that no file system and nobody would call anything."""

_COMMANDS = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


def printable(text: str) -> str:
    """Return characters that cannot be printed, such as those that steer a terminal, as Python writes them."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def printable_lines(text: str) -> str:
    """Return the same of text of several lines, which stay lines."""
    return "\n".join(map(printable, text.split("\n")))


def terminal_text(text: str) -> str:
    """Return the same for a message, with values cut that would fill a page."""
    cut = _LONG.sub(lambda word: f"{word[0][:100]}… ({len(word[0]):,} characters)", text)
    return printable_lines(cut)


def csv_cell(value: object) -> object:
    """Return a value as a cell: text that would be computed begins with an apostrophe; numbers stay."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def latex(text: str) -> str:
    """Return text that TeX sets as it is."""
    return printable(text).translate(_COMMANDS)
