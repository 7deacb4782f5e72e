"""Writes values for tester or candidate as plain data: reading them cannot run code.

Values of standard types are sent as such. Instances of their subclasses are sent as the standard type
(an integer that overrides `==` arrives as an integer). Every other object stays in its process: only a
number is sent, by which its owner finds it (`peer.py`).

Both sides number lists, dicts and other mutable values in the order of their occurrence (`Table`). So a
value that occurs twice arrives as one object. After a call, the new contents of its mutable arguments
are sent back under their numbers.

`decoder.py` reads the values.
"""

import builtins
import contextlib
import datetime
import pathlib
import re
import struct
import sys
import uuid
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

MOST_DEPTH = 10_000
_FRAMES = 8
"""Most Python frames that one level of nesting takes."""
LENGTH = struct.Struct("<I")
FLOAT = struct.Struct("<d")
COMPLEX = struct.Struct("<dd")
_PACKED_FROM = 16
"""Least length of a list of machine integers or floats that is sent as one block."""
PLAIN_DTYPE = re.compile(r"[<>|=][biufcSU]\d{1,6}")
"""Types of numpy's arrays and scalars that are sent as plain data; objects in arrays are not."""


class Refused(Exception):
    """A value cannot be sent, or a message is malformed."""


@contextlib.contextmanager
def deeply() -> Iterator[None]:
    """Raise Python's recursion limit so that values may be nested `MOST_DEPTH` deep.

    Yields:
        Nothing; the former recursion limit is restored at the end.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _FRAMES * MOST_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Table:
    """Numbers mutable values, and keeps references to them, so that no `id` is used twice."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[int, int] = {}

    def add(self, value: Any) -> None:
        """Give a value the next number.

        Args:
            value: A mutable value that has no number yet.
        """
        self._numbers[id(value)] = len(self.values)
        self.values.append(value)

    def number(self, value: object) -> int | None:
        """Return the number of a value.

        Args:
            value: Any object.

        Returns:
            Its number, from 0 on; None if it has none.
        """
        return self._numbers.get(id(value))


MAKERS: dict[bytes, Callable[[], Any]] = {
    b"O": OrderedDict,  # before their base classes
    b"C": Counter,
    b"G": defaultdict,
    b"l": list,
    b"d": dict,
    b"S": set,
    b"Q": deque,
    b"B": bytearray,
}
"""Constructors of mutable types, by the letter that begins such a value."""
_CHANGING: dict[type, bytes] = {maker: tag for tag, maker in MAKERS.items()}  # type: ignore[misc]
MAPPINGS = b"dOCG"
_BASES = (bool, int, float, complex, str, bytes, tuple, frozenset, *_CHANGING, array)

_EMPTY: dict[Any, Any] = {}
PARTS: dict[type, tuple[bytes, Callable[[Any], tuple[Any, ...]], Callable[..., Any]]] = {
    datetime.date: (b"date", lambda v: (v.year, v.month, v.day), datetime.date),
    datetime.timedelta: (
        b"delta",
        lambda v: (v.days, v.seconds, v.microseconds),
        datetime.timedelta,
    ),
    datetime.time: (b"time", lambda v: (v.isoformat(),), datetime.time.fromisoformat),
    datetime.datetime: (b"datetime", lambda v: (v.isoformat(),), datetime.datetime.fromisoformat),
    slice: (b"slice", lambda v: (v.start, v.stop, v.step), slice),
    pathlib.PosixPath: (b"path", lambda v: (str(v),), pathlib.PosixPath),
    pathlib.PurePosixPath: (b"pure path", lambda v: (str(v),), pathlib.PurePosixPath),
    uuid.UUID: (b"uuid", lambda v: (v.hex,), uuid.UUID),
    type(_EMPTY.keys()): (b"keys", lambda v: (list(v),), lambda v: dict.fromkeys(v).keys()),
    type(_EMPTY.values()): (
        b"values",
        lambda v: (list(v),),
        lambda v: dict(enumerate(v)).values(),
    ),
    type(_EMPTY.items()): (b"items", lambda v: (list(v),), lambda v: dict(v).items()),
}
"""Types made of plain parts: name, function that returns the parts, and function that rebuilds it."""
MADE = {name: make for name, _, make in PARTS.values()}

NAMED = {
    name: getattr(builtins, name)
    for name in "int float complex bool str bytes bytearray list tuple dict set frozenset range "
    "len abs min max sum sorted round any all ord chr repr NotImplemented".split()
}
NAMED |= {
    n: v for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, Exception)
}
"""Built-in functions, types and exceptions, which are sent by name: each side uses its own."""
_NAMES = {id(value): name for name, value in NAMED.items()}


def sized(data: bytes) -> bytes:
    """Return bytes preceded by their number.

    Args:
        data: Fewer than 4 GiB.

    Returns:
        The number in four bytes, then the bytes.
    """
    return LENGTH.pack(len(data)) + data


def _whole(value: int) -> bytes:
    """Encode an integer of any size: number of bytes, then two's complement, lowest byte first."""
    return sized(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


class Encoder:
    """Appends values to `data`.

    Args:
        table: Numbers of the mutable values; those of this message are added.
        refer: Writes the number of an object that cannot be sent.
    """

    def __init__(self, table: Table, refer: Callable[[object], bytes]) -> None:
        self.data = bytearray()
        self._table, self._refer = table, refer

    def write(self, value: Any, depth: int = 0) -> None:
        """Append a value of any type.

        Args:
            value: The value; a mutable one that already has a number is written as this number.
            depth: Number of enclosing values.

        Raises:
            Refused: When it is nested too deeply.
        """
        if depth > MOST_DEPTH:
            raise Refused(f"it is nested more than {MOST_DEPTH} deep")
        if _is_scalar(value):  # some are also subclasses of float or str
            self.data += b"m" + sized(_pack_array(value))
            return
        kind = _sent_as(value)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            self.data += simple(value)
        elif kind in (tuple, frozenset):
            self.data += b"t" if kind is tuple else b"Z"
            self._write_all(kind.__iter__(value), kind.__len__(value), depth)
        elif kind in PARTS:
            self.data += b"x" + sized(PARTS[kind][0])
            self.write(PARTS[kind][1](value), depth + 1)
        elif kind in _CHANGING or kind is array or _is_array(value):
            self._write_changing(value, kind, depth)
        elif _is_named(value):
            self.data += b"g" + sized(_NAMES[id(value)].encode())
        else:
            self.data += self._refer(value)

    def _write_changing(self, value: Any, kind: type, depth: int) -> None:
        number = self._table.number(value)
        if number is not None:
            self.data += b"r" + LENGTH.pack(number)
            return
        self._table.add(value)
        self.write_contents(value, kind, depth)

    def write_contents(self, value: Any, kind: type, depth: int = 0) -> None:
        """Append the type and all contents of a mutable value, even if it has a number.

        Args:
            value: The value.
            kind: The type as which it is sent.
            depth: Number of enclosing values.
        """
        tag = _CHANGING.get(kind)
        if tag is None:
            is_of_numpy = _is_array(value)
            self.data += b"n" + sized(_pack_array(value)) if is_of_numpy else b"y" + _pack(value)
        elif tag == b"B":
            self.data += b"B" + sized(bytes(value))
        elif tag == b"l" and (packed := _packed(value)) is not None:
            self.data += b"p" + packed
        elif tag in MAPPINGS:
            self.data += tag
            if tag == b"G":
                self.write(value.default_factory if _is_named(value.default_factory) else None)
            pairs = list(kind.items(value))  # type: ignore[attr-defined]
            self._write_all((part for pair in pairs for part in pair), 2 * len(pairs), depth)
        else:
            self.data += tag
            self._write_all(kind.__iter__(value), kind.__len__(value), depth)  # type: ignore[attr-defined]

    def _write_all(self, values: Iterable[Any], count: int, depth: int) -> None:
        self.data += LENGTH.pack(count)
        for value in values:
            self.write(value, depth + 1)


def _sent_as(value: object) -> type:
    kind = type(value)
    if kind in _SIMPLE or kind in _BASES:
        return kind
    return next((base for base in _BASES if isinstance(value, base)), kind)


def _is_named(value: object) -> bool:
    return id(value) in _NAMES


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and _has_plain_dtype(value)


def _is_scalar(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic) and _has_plain_dtype(value)


def _has_plain_dtype(value: Any) -> bool:
    return PLAIN_DTYPE.fullmatch(value.dtype.str) is not None


def _pack_array(value: Any) -> bytes:
    """Return an array's or scalar's type, shape and memory, separated by spaces."""
    shape = ",".join(map(str, value.shape))
    return b"%s %s %s" % (value.dtype.str.encode(), shape.encode(), value.tobytes())


def _pack(value: "array[Any]") -> bytes:
    return value.typecode.encode() + sized(value.tobytes())


def _packed(values: list[Any]) -> bytes | None:
    """Return a long list of only integers or only floats as one block; None for other lists."""
    kinds = set(map(type, values)) if len(values) >= _PACKED_FROM else set()
    if kinds not in ({float}, {int}):
        return None
    try:
        return _pack(array("d" if float in kinds else "q", values))
    except OverflowError:
        return None


_SIMPLE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    type(...): lambda value: b".",
    bool: lambda value: b"T" if value else b"F",
    int: lambda value: b"i" + _whole(int.__pos__(value)),
    float: lambda value: b"f" + FLOAT.pack(float.__pos__(value)),
    complex: lambda value: b"c" + COMPLEX.pack(value.real, value.imag),
    str: lambda value: b"s" + sized(str.encode(value, "utf-8", "surrogatepass")),
    bytes: lambda value: b"b" + sized(bytes.__getitem__(value, slice(None))),
    range: lambda value: b"q" + b"".join(map(_whole, (value.start, value.stop, value.step))),
    Fraction: lambda value: b"R" + _whole(value.numerator) + _whole(value.denominator),
    Decimal: lambda value: b"D" + sized(str(value).encode()),
}
