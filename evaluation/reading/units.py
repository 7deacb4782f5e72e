"""Units of measurement with their sizes, as words after a value."""

from dataclasses import dataclass
from fractions import Fraction

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
    "volume": {"ml milliliter millilitre": "1/1000", "l liter litre": "1"},
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


def unit_named(word: str) -> Unit:
    """Return the unit that a word names, in singular or plural; of `km/h`, the quotient of two."""
    units = [_single_unit(part) for part in word.split("/")]
    if len(units) == 1:
        return units[0]
    if len(units) > 2 or not all(unit.is_known for unit in units):
        return Unit("", Fraction(1))
    top, bottom = units
    return Unit(f"{top.dimension}/{bottom.dimension}", top.size / bottom.size)


def _single_unit(word: str) -> Unit:
    name = word.casefold().strip().rstrip(".")
    name = name if name in _KNOWN else name.removesuffix("s")
    return Unit(*_KNOWN.get(name, ("", Fraction(1))))
