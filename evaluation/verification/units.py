"""Units of measurement after a value, which count only if both answers have them."""

from evaluation.reading.formula_tokens import Tree
from evaluation.reading.units import Unit, unit_named


def scaled(tree: Tree, unit: Unit) -> Tree:
    """Return a value in the basic unit of what is measured."""
    return ("*", tree, ("number", unit.size)) if unit.is_known else tree


def split_unit(tree: Tree) -> tuple[Tree, Unit | None]:
    """Return an expression without the words after (or a degree sign on) it, and its unit if any."""
    words: list[str] = []
    while tree[0] in ("*", "/") and (named := _words(tree[2])) is not None:
        words.append(named if tree[0] == "*" else "per")
        tree = tree[1]
    if tree[0] == "*" and _words(tree[1]) is not None:
        words.append(_words(tree[1]) or "")
        tree = tree[2]
    if tree[0] == "apply" and tree[1] == "°":
        return tree[2], None
    if not words:
        return tree, None
    text = " ".join(reversed(words)).split()
    return tree, unit_named(text[0] if len(text) == 1 else "")


def _words(tree: Tree) -> str | None:
    """Return the words of a unit, also with an exponent as in `cm^2`; None if it is a value."""
    if tree[0] == "words":
        return str(tree[1])
    if tree[0] == "^" and tree[1][0] == "words":
        return f"{tree[1][1]} squared"
    return None
