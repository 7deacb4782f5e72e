"""Escaping of text from data, where something would read more into it: terminal, CSV, LaTeX.

Names in settings need none (`settings/names.py`); strata, ids and a provider's metrics do.
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
    """Return text whose characters can all be printed.

    Args:
        text: Text from data.

    Returns:
        The text; characters such as those that steer a terminal are as Python writes them.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def printable_lines(text: str) -> str:
    """Return text of several lines, which stay lines, whose characters can all be printed.

    Args:
        text: Text from data.

    Returns:
        The text, each line as by `printable`.
    """
    return "\n".join(map(printable, text.split("\n")))


def terminal_text(text: str) -> str:
    """Return a message whose characters can all be printed, with values cut that would fill a page.

    Args:
        text: A message, which may hold text from data.

    Returns:
        The text, each line as by `printable`.
    """
    cut = _LONG.sub(lambda word: f"{word[0][:100]}… ({len(word[0]):,} characters)", text)
    return printable_lines(cut)


def csv_cell(value: object) -> object:
    """Return a value as a cell of CSV that no spreadsheet computes.

    Args:
        value: Text or a number.

    Returns:
        Text that would be computed begins with an apostrophe; numbers stay.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def latex(text: str) -> str:
    """Return text that TeX sets as it is.

    Args:
        text: Text from data.

    Returns:
        Source for TeX.
    """
    return printable(text).translate(_COMMANDS)
