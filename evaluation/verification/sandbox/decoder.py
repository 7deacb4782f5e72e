"""Reads values that `encoder.py` wrote, or that a hostile program forged."""

from array import array
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from evaluation.verification.sandbox.encoder import (
    COMPLEX,
    FLOAT,
    LENGTH,
    MADE,
    MAKERS,
    MAPPINGS,
    MOST_DEPTH,
    NAMED,
    PLAIN_DTYPE,
    Refused,
    Table,
)

_MOST_DIMENSIONS = 32


class Decoder:
    """Reads values; for malformed data it raises only the exceptions in `MALFORMED`.

    Args:
        data: The body of a message.
        table: The mutable values, numbered as in the question.
        find: Returns the stand-in for an object that was not sent, by its owner, number and name.
    """

    def __init__(
        self, data: bytes, table: Table, find: Callable[[bytes, int, str], object]
    ) -> None:
        self._data, self._at = data, 0
        self._table, self._find = table, find

    def _take(self, length: int) -> bytes:
        begin, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise Refused("its message ends too early")
        return self._data[begin : self._at]

    def _count(self) -> int:
        number: int = LENGTH.unpack(self._take(4))[0]
        return number

    def _sized(self) -> bytes:
        return self._take(self._count())

    def _whole(self) -> int:
        return int.from_bytes(self._sized(), "little", signed=True)

    def _text(self) -> str:
        return self._sized().decode("utf-8", "surrogatepass")

    def read(self, depth: int = 0) -> Any:
        """Read a value of any type.

        Args:
            depth: Number of enclosing values.

        Returns:
            The value; for an object that was not sent, the result of `find`.

        Raises:
            Refused: When its type is unknown, or it is nested too deeply.
        """
        if depth > MOST_DEPTH:
            raise Refused(f"it is nested more than {MOST_DEPTH} deep")
        tag = self._take(1)
        if tag in _READERS:
            return _READERS[tag](self)
        if tag == b"t":
            return tuple(self._items(depth))
        if tag == b"Z":
            return frozenset(self._items(depth))
        if tag == b"r":
            return self._table.values[self._count()]
        if tag in (b"h", b"H"):
            return self._find(tag, self._count(), self._text())
        if tag == b"x":
            make = MADE[self._sized()]
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
        self._table.add(value)  # before its items, which may contain it
        self._fill(value, tag, depth)
        return value

    def update(self, value: Any) -> None:
        """Replace the contents of a value of the table by those in the message.

        Args:
            value: A mutable value, which is changed in place.

        Raises:
            Refused: When the contents are of another type.
        """
        tag = self._take(1)
        if tag in b"pny":
            block = self._block(tag)
            if type(block) is not type(value):
                raise Refused("its message gives an argument another type")
            _assign_array(value, block) if tag == b"n" else value.__setitem__(slice(None), block)
        elif MAKERS.get(tag) is not type(value):
            raise Refused("its message gives an argument another type")
        else:
            value.clear()
            self._fill(value, tag, 0)

    def _fill(self, value: Any, tag: bytes, depth: int) -> None:
        if tag == b"B":
            value += self._sized()
        elif tag in MAPPINGS:
            if tag == b"G":
                value.default_factory = self.read(depth + 1)
            for _ in range(self._count() // 2):
                key = self.read(depth + 1)
                value[key] = self.read(depth + 1)
        else:
            add = value.add if tag == b"S" else value.append
            for _ in range(self._count()):
                add(self.read(depth + 1))

    def _items(self, depth: int) -> list[Any]:
        return [self.read(depth + 1) for _ in range(self._count())]

    def _block(self, tag: bytes) -> Any:
        if tag == b"n":
            return _unpack_array(self._sized())
        block: array[Any] = array(self._take(1).decode())
        block.frombytes(self._sized())
        return block.tolist() if tag == b"p" else block


def _unpack_array(data: bytes) -> Any:
    """Return a numpy array that `Encoder` wrote; raise ValueError for malformed data."""
    import numpy

    kind, shape, block = data.split(b" ", 2)
    lengths = [int(length) for length in shape.split(b",") if length]
    if (
        not PLAIN_DTYPE.fullmatch(kind.decode())
        or len(lengths) > _MOST_DIMENSIONS
        or min(lengths, default=0) < 0
    ):
        raise ValueError("no such array")
    return numpy.frombuffer(block, numpy.dtype(kind.decode())).reshape(lengths).copy()


def _assign_array(value: Any, new: Any) -> None:
    if (value.dtype, value.shape) != (new.dtype, new.shape):
        raise ValueError("an argument was given another shape")
    value[...] = new


_READERS: dict[bytes, Callable[[Decoder], Any]] = {
    b"N": lambda decoder: None,
    b".": lambda decoder: ...,
    b"T": lambda decoder: True,
    b"F": lambda decoder: False,
    b"i": Decoder._whole,
    b"f": lambda decoder: FLOAT.unpack(decoder._take(8))[0],
    b"c": lambda decoder: complex(*COMPLEX.unpack(decoder._take(16))),
    b"s": Decoder._text,
    b"b": Decoder._sized,
    b"q": lambda decoder: range(decoder._whole(), decoder._whole(), decoder._whole()),
    b"R": lambda decoder: Fraction(decoder._whole(), decoder._whole()),
    b"D": lambda decoder: Decimal(decoder._sized().decode()),
    b"m": lambda decoder: _unpack_array(decoder._sized())[()],
    b"g": lambda decoder: NAMED[decoder._text()],
}


MALFORMED = (
    *(Refused, ValueError, TypeError, LookupError, ArithmeticError, ImportError),
    *(MemoryError, RecursionError),
)
