"""Units of measurement after a value, which count only if both answers have them."""

from dataclasses import dataclass
from fractions import Fraction

from evaluation.reading.formula_tokens import Tree

_UNITS = {
    "length": {
        "mm millimeter millimetre": "1/1000",
        "cm centimeter centimetre": "1/100",
        "m meter metre": "1",
        "km kilometer kilometre": "1000",
        "in inch inche": "254/10000",
        "ft foot feet": "3048/10000",
        "yd yard": "9144/10000",
        "mi mile": "1609344/1000",
    },
    "time": {
        "s sec second": "1",
        "min minute": "60",
        "h hr hour": "3600",
        "day": "86400",
        "week": "604800",
    },
    "weight": {
        "mg": "1/1000000",
        "g gram": "1/1000",
        "kg kilogram": "1",
        "lb pound": "45359237/100000000",
        "oz ounce": "45359237/1600000000",
    },
    "money": {"cent": "1/100", "dollar usd": "1"},
}
_KNOWN = {
    name: (dimension, Fraction(scale))
    for dimension, units in _UNITS.items()
    for names, scale in units.items()
    for name in names.split()
}


@dataclass(frozen=True)
class Unit:
    """A unit: what it measures, and its size; both are unknown for most words."""

    dimension: str
    size: Fraction

    @property
    def is_known(self) -> bool:
        """Whether it is in the table of units."""
        return bool(self.dimension)

    def scaled(self, tree: Tree) -> Tree:
        """Return the value in the basic unit of what is measured."""
        return ("*", tree, ("number", self.size)) if self.dimension else tree


def split_unit(tree: Tree) -> tuple[Tree, Unit | None]:
    """Return an expression without the words after (or a degree sign on) it, and its unit.

    Returns:
        The value, and the unit if there is one.
    """
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
    text = " ".join(reversed(words)).casefold().split()
    name = text[0].rstrip(".") if len(text) == 1 else ""
    name = name if name in _KNOWN else name.removesuffix("s")
    dimension, size = _KNOWN.get(name, ("", Fraction(1)))
    return tree, Unit(dimension, size)


def _words(tree: Tree) -> str | None:
    """Return the words of a unit, also with an exponent as in `cm^2`; None if it is a value."""
    if tree[0] == "words":
        return str(tree[1])
    if tree[0] == "^" and tree[1][0] == "words":
        return f"{tree[1][1]} squared"
    return None
