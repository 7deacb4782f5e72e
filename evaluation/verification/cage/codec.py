"""Values between judge and candidate, as plain data: nothing that is read can run code.

Types of the standard library arrive as what they are, subclasses of them as the type below (an
integer that overrides `==` is an integer), and everything else stays where it is: only a number
is sent, by which its owner knows it (`Holder`).

Lists, dicts and other values that can change are numbered in the order in which they are met, by
both sides alike (`Table`). So a value that occurs twice is one object again, and what a call did to
its arguments is sent back as the new contents of their numbers.
"""

import builtins
import struct
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

from evaluation.verification.cage import arrays

MOST_DEPTH = 200
_LENGTH = struct.Struct("<I")
_FLOAT = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")
_PACKED_FROM = 16
"""Lists of this many machine integers or floats, and longer ones, are sent as one block."""


class Refused(Exception):
    """A value cannot be sent, or what arrives is none."""


class Holder(Protocol):
    """Gives numbers to what cannot be sent, and knows the numbers of the other side."""

    def tell(self, value: object) -> bytes: ...
    def find(self, whose: bytes, number: int, name: str) -> object: ...


class Table:
    """Values that can change, numbered; holds them, so that no `id` is used twice."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[int, int] = {}

    def add(self, value: Any) -> None:
        self._numbers[id(value)] = len(self.values)
        self.values.append(value)

    def number(self, value: object) -> int | None:
        return self._numbers.get(id(value))


_MAKERS: dict[bytes, Callable[[], Any]] = {
    b"l": list,
    b"d": dict,
    b"S": set,
    b"Q": deque,
    b"O": OrderedDict,
    b"C": Counter,
    b"G": defaultdict,
    b"B": bytearray,
}
_CHANGING: dict[type, bytes] = {maker: tag for tag, maker in _MAKERS.items()}  # type: ignore[misc]
_MAPPINGS = b"dOCG"
_BASES = (bool, int, float, complex, str, bytes, tuple, frozenset, *_CHANGING, array)

_NAMED = {
    name: getattr(builtins, name)
    for name in "int float complex bool str bytes bytearray list tuple dict set frozenset range "
    "len abs min max sum sorted round any all ord chr repr".split()
}
"""Built-in functions and types that tests pass to programs: each side takes its own."""
_NAMES = {id(value): name for name, value in _NAMED.items()}


def sized(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def whole(value: int) -> bytes:
    return sized(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


class Writer:
    """Appends values to `data`."""

    def __init__(self, table: Table, holder: Holder) -> None:
        self.data = bytearray()
        self._table, self._holder = table, holder

    def write(self, value: Any, depth: int = 0) -> None:
        if depth > MOST_DEPTH:
            raise Refused(f"it is nested more than {MOST_DEPTH} deep")
        if arrays.is_scalar(value):  # some are also subclasses of float or str
            self.data += b"m" + sized(arrays.pack(value))
            return
        kind = _sent_as(value)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            self.data += simple(value)
        elif kind in (tuple, frozenset):
            self.data += b"t" if kind is tuple else b"Z"
            self._write_all(kind.__iter__(value), kind.__len__(value), depth)
        elif kind in _CHANGING or kind is array or arrays.is_array(value):
            self._write_changing(value, kind, depth)
        elif (name := _NAMES.get(id(value))) is not None:
            self.data += b"g" + sized(name.encode())
        else:
            self.data += self._holder.tell(value)

    def _write_changing(self, value: Any, kind: type, depth: int) -> None:
        number = self._table.number(value)
        if number is not None:
            self.data += b"r" + _LENGTH.pack(number)
            return
        self._table.add(value)
        self.write_contents(value, kind, depth)

    def write_contents(self, value: Any, kind: type, depth: int = 0) -> None:
        """The type and all contents of a value that can change, whatever its number."""
        tag = _CHANGING.get(kind)
        if tag is None:
            is_array = arrays.is_array(value)
            self.data += b"n" + sized(arrays.pack(value)) if is_array else b"y" + _pack(value)
        elif tag == b"B":
            self.data += b"B" + sized(bytes(value))
        elif tag == b"l" and (packed := _packed(value)) is not None:
            self.data += b"p" + packed
        elif tag in _MAPPINGS:
            self.data += tag
            pairs = list(kind.items(value))  # type: ignore[attr-defined]
            self._write_all((part for pair in pairs for part in pair), 2 * len(pairs), depth)
        else:
            self.data += tag
            self._write_all(kind.__iter__(value), kind.__len__(value), depth)  # type: ignore[attr-defined]

    def _write_all(self, values: Iterable[Any], count: int, depth: int) -> None:
        self.data += _LENGTH.pack(count)
        for value in values:
            self.write(value, depth + 1)


def _sent_as(value: object) -> type:
    kind = type(value)
    if kind in _SIMPLE or kind in _BASES:
        return kind
    return next((base for base in _BASES if isinstance(value, base)), kind)


def _pack(value: "array[Any]") -> bytes:
    return value.typecode.encode() + sized(value.tobytes())


def _packed(values: list[Any]) -> bytes | None:
    """A list of integers or floats alone as one block of memory, if it is one."""
    if len(values) < _PACKED_FROM:
        return None
    kinds = set(map(type, values))
    if kinds == {float}:
        return _pack(array("d", values))
    if kinds == {int}:
        try:
            return _pack(array("q", values))
        except OverflowError:
            return None
    return None


_SIMPLE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    type(...): lambda value: b".",
    bool: lambda value: b"T" if value else b"F",
    int: lambda value: b"i" + whole(int.__pos__(value)),
    float: lambda value: b"f" + _FLOAT.pack(float.__pos__(value)),
    complex: lambda value: b"c" + _COMPLEX.pack(value.real, value.imag),
    str: lambda value: b"s" + sized(str.encode(value, "utf-8", "surrogatepass")),
    bytes: lambda value: b"b" + sized(bytes.__getitem__(value, slice(None))),
    range: lambda value: b"q" + b"".join(map(whole, (value.start, value.stop, value.step))),
    Fraction: lambda value: b"R" + whole(value.numerator) + whole(value.denominator),
    Decimal: lambda value: b"D" + sized(str(value).encode()),
}


class Reader:
    """Reads values that were written by a Writer, or by somebody who only pretends to be one."""

    def __init__(self, data: bytes, table: Table, holder: Holder) -> None:
        self._data, self._at = data, 0
        self._table, self._holder = table, holder

    def take(self, length: int) -> bytes:
        begin, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise Refused("its message ends too early")
        return self._data[begin : self._at]

    def count(self) -> int:
        number: int = _LENGTH.unpack(self.take(4))[0]
        return number

    def sized(self) -> bytes:
        return self.take(self.count())

    def whole(self) -> int:
        return int.from_bytes(self.sized(), "little", signed=True)

    def text(self) -> str:
        return self.sized().decode("utf-8", "surrogatepass")

    def read(self, depth: int = 0) -> Any:
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
            return self._holder.find(tag, self.count(), self.text())
        return self._read_changing(tag, depth)

    def _read_changing(self, tag: bytes, depth: int) -> Any:
        if tag in b"pny":
            block = self._block(tag)
            self._table.add(block)
            return block
        if tag not in _MAKERS:
            raise Refused("its message has no such type")
        value = _MAKERS[tag]()
        self._table.add(value)  # before its items, which may hold it
        self._fill(value, tag, depth)
        return value

    def update(self, value: Any) -> None:
        """Gives a value of the table the contents that are written here, if the type is the same."""
        tag = self.take(1)
        if tag in b"pny":
            block = self._block(tag)
            if type(block) is not type(value):
                raise Refused("its message gives an argument another type")
            arrays.assign(value, block) if tag == b"n" else value.__setitem__(slice(None), block)
        elif _MAKERS.get(tag) is not type(value):
            raise Refused("its message gives an argument another type")
        else:
            value.clear()
            self._fill(value, tag, 0)

    def _fill(self, value: Any, tag: bytes, depth: int) -> None:
        if tag == b"B":
            value += self.sized()
        elif tag in _MAPPINGS:
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
            return arrays.unpack(self.sized())
        block: array[Any] = array(self.take(1).decode())
        block.frombytes(self.sized())
        return block.tolist() if tag == b"p" else block


_READERS: dict[bytes, Callable[[Reader], Any]] = {
    b"N": lambda reader: None,
    b".": lambda reader: ...,
    b"T": lambda reader: True,
    b"F": lambda reader: False,
    b"i": Reader.whole,
    b"f": lambda reader: _FLOAT.unpack(reader.take(8))[0],
    b"c": lambda reader: complex(*_COMPLEX.unpack(reader.take(16))),
    b"s": Reader.text,
    b"b": Reader.sized,
    b"q": lambda reader: range(reader.whole(), reader.whole(), reader.whole()),
    b"R": lambda reader: Fraction(reader.whole(), reader.whole()),
    b"D": lambda reader: Decimal(reader.sized().decode()),
    b"m": lambda reader: arrays.unpack(reader.sized())[()],
    b"g": lambda reader: _NAMED[reader.text()],
}
