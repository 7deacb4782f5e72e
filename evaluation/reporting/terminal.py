"""Tables as text."""

from collections.abc import Sequence

from tabulate import tabulate

from evaluation.errors import printable


def as_table(rows: Sequence[Sequence[str]], form: str = "simple") -> str:
    """Return rows of cells as aligned columns, the first row underlined; control characters are escaped."""
    head, *rest = [[printable(cell) for cell in row] for row in rows]
    return str(tabulate(rest, headers=head, tablefmt=form, disable_numparse=True))
