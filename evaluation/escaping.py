"""Escapes text from data for terminals, CSV and LaTeX, which would interpret parts of it, and for files.

Names in settings need no escaping (`settings/names.py`); strata, ids and providers' metrics do.
"""

_FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet would compute."""

_COMMANDS = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


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
