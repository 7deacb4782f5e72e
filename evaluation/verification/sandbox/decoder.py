"""Reads values that `encoder.py` wrote, or a hostile program in its place."""

from array import array
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from evaluation.verification.sandbox.arrays import assign_array, unpack_array
from evaluation.verification.sandbox.encoder import (
    COMPLEX,
    FLOAT,
    LENGTH,
    MADE,
    MAKERS,
    MAPPINGS,
    MOST_DEPTH,
    NAMED,
    References,
    Refused,
    Table,
)


class Decoder:
    """Reads values; raises the exceptions in `MALFORMED`, and no other, for what no Encoder wrote.

    Args:
        data: The body of a message.
        table: Values that can change, as the message's question numbered them.
        references: Knows what the numbers of objects that cannot be sent stand for.
    """

    def __init__(self, data: bytes, table: Table, references: References) -> None:
        self._data, self._at = data, 0
        self._table, self._references = table, references

    def take(self, length: int) -> bytes:
        """Read bytes.

        Args:
            length: How many.

        Returns:
            The bytes.

        Raises:
            Refused: When fewer are left.
        """
        begin, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise Refused("its message ends too early")
        return self._data[begin : self._at]

    def count(self) -> int:
        """Read a length or number of four bytes.

        Returns:
            The number, from 0 on.
        """
        number: int = LENGTH.unpack(self.take(4))[0]
        return number

    def sized(self) -> bytes:
        """Read bytes behind their number.

        Returns:
            The bytes.
        """
        return self.take(self.count())

    def whole(self) -> int:
        """Read an integer of any size.

        Returns:
            The integer.
        """
        return int.from_bytes(self.sized(), "little", signed=True)

    def text(self) -> str:
        """Read a text, which may have half characters.

        Returns:
            The text.
        """
        return self.sized().decode("utf-8", "surrogatepass")

    def read(self, depth: int = 0) -> Any:
        """Read a value of any type.

        Args:
            depth: How many values enclose it.

        Returns:
            The value; for what was not sent, what `References.find` gives.

        Raises:
            Refused: When it has no type that is sent, or is nested too deeply.
        """
        if depth > MOST_DEPTH:
            raise Refused(f"it is nested more than {MOST_DEPTH} deep")
        tag = self.take(1)
        if tag in _READERS:
            return _READERS[tag](self)
        if tag == b"t":
            return tuple(self._items(depth))
        if tag == b"Z":
            return frozenset(self._items(depth))
        if tag == b"r":
            return self._table.values[self.count()]
        if tag in (b"h", b"H"):
            return self._references.find(tag, self.count(), self.text())
        if tag == b"x":
            make = MADE[self.sized()]
            return make(*self.read(depth + 1))
        return self._read_changing(tag, depth)

    def _read_changing(self, tag: bytes, depth: int) -> Any:
        if tag in b"pny":
            block = self._block(tag)
            self._table.add(block)
            return block
        if tag not in MAKERS:
            raise Refused("its message has no such type")
        value = MAKERS[tag]()
        self._table.add(value)  # before its items, which may hold it
        self._fill(value, tag, depth)
        return value

    def update(self, value: Any) -> None:
        """Give a value of the table the contents that are written here.

        Args:
            value: A value that can change, which is changed in place.

        Raises:
            Refused: When the contents are of another type.
        """
        tag = self.take(1)
        if tag in b"pny":
            block = self._block(tag)
            if type(block) is not type(value):
                raise Refused("its message gives an argument another type")
            assign_array(value, block) if tag == b"n" else value.__setitem__(slice(None), block)
        elif MAKERS.get(tag) is not type(value):
            raise Refused("its message gives an argument another type")
        else:
            value.clear()
            self._fill(value, tag, 0)

    def _fill(self, value: Any, tag: bytes, depth: int) -> None:
        if tag == b"B":
            value += self.sized()
        elif tag in MAPPINGS:
            if tag == b"G":
                value.default_factory = self.read(depth + 1)
            for _ in range(self.count() // 2):
                key = self.read(depth + 1)
                value[key] = self.read(depth + 1)
        else:
            add = value.add if tag == b"S" else value.append
            for _ in range(self.count()):
                add(self.read(depth + 1))

    def _items(self, depth: int) -> list[Any]:
        return [self.read(depth + 1) for _ in range(self.count())]

    def _block(self, tag: bytes) -> Any:
        if tag == b"n":
            return unpack_array(self.sized())
        block: array[Any] = array(self.take(1).decode())
        block.frombytes(self.sized())
        return block.tolist() if tag == b"p" else block


_READERS: dict[bytes, Callable[[Decoder], Any]] = {
    b"N": lambda decoder: None,
    b".": lambda decoder: ...,
    b"T": lambda decoder: True,
    b"F": lambda decoder: False,
    b"i": Decoder.whole,
    b"f": lambda decoder: FLOAT.unpack(decoder.take(8))[0],
    b"c": lambda decoder: complex(*COMPLEX.unpack(decoder.take(16))),
    b"s": Decoder.text,
    b"b": Decoder.sized,
    b"q": lambda decoder: range(decoder.whole(), decoder.whole(), decoder.whole()),
    b"R": lambda decoder: Fraction(decoder.whole(), decoder.whole()),
    b"D": lambda decoder: Decimal(decoder.sized().decode()),
    b"m": lambda decoder: unpack_array(decoder.sized())[()],
    b"g": lambda decoder: NAMED[decoder.text()],
}


MALFORMED = (
    *(Refused, ValueError, TypeError, LookupError, ArithmeticError, ImportError),
    *(MemoryError, RecursionError),
)
