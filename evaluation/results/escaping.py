"""Escapes text from data for CSV and LaTeX, which would interpret parts of it.

Names in settings need no escaping (`settings/names.py`); strata, ids and providers' metrics do.
"""

from evaluation.errors import printable

_FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet would compute."""

_COMMANDS = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


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
