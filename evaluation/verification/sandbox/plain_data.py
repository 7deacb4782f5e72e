"""Writes plain data as JSON, and reads it. No message can make the reader build anything else.

A value is a list of nodes and a cell. A cell is a scalar of JSON, or `[n]` for node `n`. A node is a
container or a value that JSON lacks: its type's name, then cells. So a value that occurs twice arrives as
one object. The parts of an immutable value are nodes before it; a mutable one may contain itself.

Only exact types are plain, and subclasses that compare as their base does, which arrive as the base
(named tuples, enumerations of integers). Iterators arrive as iterators over what they yield.
"""

import datetime
import json
import re
import sys
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

MOST_BYTES = 128 << 20
MOST_ITEMS = 1 << 20
"""Items of an iterator that are sent; with more it is refused."""
_WHOLE = 1 << 63
"""Least integer that is not written as JSON's, whose decimal digits take quadratic time."""
_SCALARS = {type(None), bool, float, str}
_DTYPE = re.compile(r"[<>|=][biufcSU]\d{1,6}")
"""Numpy's types of plain data."""

Cell = Any
Node = list[Cell] | None


class NotPlainData(Exception):
    """A value is no plain data, or a message is malformed."""


_MUTABLE: dict[str, Callable[[], Any]] = {
    kind.__name__: kind
    for kind in (Counter, OrderedDict, defaultdict, list, dict, set, deque, bytearray)
}
"""Mutable types by name, subclasses before their bases."""
_ITERATED: dict[type, Callable[[Iterable[Any]], Any]] = {
    tuple: tuple,
    frozenset: frozenset,
    type({}.keys()): lambda items: dict.fromkeys(items).keys(),
    type({}.values()): lambda items: dict(enumerate(items)).values(),
    type({}.items()): lambda items: dict(items).items(),
}
_PARTS: dict[type, tuple[Callable[[Any], Sequence[Any]], Callable[..., Any]]] = {
    int: (lambda v: [hex(v)], lambda text: int(text, 16)),
    complex: (lambda v: [v.real, v.imag], complex),
    bytes: (lambda v: [v.decode("latin-1")], lambda text: text.encode("latin-1")),
    range: (lambda v: [v.start, v.stop, v.step], range),
    slice: (lambda v: [v.start, v.stop, v.step], slice),
    type(...): (lambda v: [], lambda: ...),
    Fraction: (lambda v: [v.numerator, v.denominator], Fraction),
    Decimal: (lambda v: [str(v)], Decimal),
    datetime.date: (lambda v: [v.isoformat()], datetime.date.fromisoformat),
    datetime.time: (lambda v: [v.isoformat()], datetime.time.fromisoformat),
    datetime.datetime: (lambda v: [v.isoformat()], datetime.datetime.fromisoformat),
    datetime.timedelta: (lambda v: [v.days, v.seconds, v.microseconds], datetime.timedelta),
    datetime.timezone: (lambda v: [v.utcoffset(None)], datetime.timezone),
    UUID: (lambda v: [v.hex], UUID),
    PurePosixPath: (lambda v: [str(v)], PurePosixPath),
    array: (
        lambda v: [v.typecode, v.tobytes().decode("latin-1")],
        lambda kind, text: array(kind, text.encode("latin-1")),
    ),
}
"""Types made of parts: functions that return the parts, and that rebuild the value."""
PLAIN: tuple[Any, ...] = (*_MUTABLE.values(), str, int, float, *_ITERATED, *_PARTS)
_EXACT: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__pos__,
    float: float.__pos__,
}
_ARRAY, _SCALAR, _ITERATOR = "numpy array", "numpy scalar", "iterator"


class Writer:
    """Collects the nodes of values.

    Args:
        known: Values that the reader has already, by node; their contents are not written.
    """

    def __init__(self, known: Sequence[Any] = ()) -> None:
        self.values, self.nodes = list(known), list[Node]([None] * len(known))
        self._numbers = {id(value): number for number, value in enumerate(known)}

    def cell(self, value: Any) -> Cell:
        """Return the cell of a value, after adding its nodes; raise NotPlainData if it is none."""
        kind = type(value)
        if kind in _SCALARS or (kind is int and -_WHOLE < value < _WHOLE):
            return value
        number = self._numbers.get(id(value))
        if number is not None:
            return [number]
        if (base := _base(value, kind)) in _EXACT and (exact := _EXACT[base](value)) is not value:
            return self.cell(exact)
        if base in _MUTABLE.values():
            number = self._add(value, None)  # before its items, which may contain it
            self.nodes[number] = self._contents(value, base)
        else:
            node = self._immutable(value, base)
            number = self._add(value, node)
        return [number]

    def write_again(self) -> None:
        """Write the present contents of the known values that can change."""
        for number, value in enumerate(list(self.values)):
            if self.nodes[number] is None:
                base = _base(value, type(value))
                if base in _MUTABLE.values():
                    self.nodes[number] = self._contents(value, base)
                elif _is_of_numpy(value) and hasattr(value, "__setitem__"):  # no scalar
                    self.nodes[number] = self._immutable(value, base)

    def _add(self, value: Any, node: Node) -> int:
        self._numbers[id(value)] = len(self.nodes)
        self.nodes.append(node)
        self.values.append(value)  # keeps it alive, so that no `id` is used twice
        return len(self.nodes) - 1

    def _contents(self, value: Any, base: Any) -> Node:
        items = base.__iter__(value)
        if issubclass(base, dict):
            items = (part for pair in base.items(value) for part in pair)
        return [base.__name__, *self._cells(list(items))]

    def _immutable(self, value: Any, base: type | None) -> Node:
        if _is_of_numpy(value):
            name = _SCALAR if isinstance(value, sys.modules["numpy"].generic) else _ARRAY
            block = value.tobytes().decode("latin-1")
            return [name, value.dtype.str, block, *value.shape]
        if base in _ITERATED:
            return [base.__name__, *self._cells(list(base.__iter__(value)))]  # type: ignore[attr-defined]
        if base in _PARTS:
            return [base.__name__, *self._cells(list(_PARTS[base][0](value)))]
        if isinstance(value, Iterator):
            items = list(islice(value, MOST_ITEMS + 1))
            if len(items) > MOST_ITEMS:
                raise NotPlainData(f"it yields more than {MOST_ITEMS:,} items")
            return [_ITERATOR, *self._cells(items)]
        raise NotPlainData(f"an object of type {type(value).__name__} is no plain data")

    def _cells(self, items: list[Any]) -> list[Cell]:
        kinds = set(map(type, items))
        if kinds == {int} and min(items) > -_WHOLE and max(items) < _WHOLE:
            return items
        return items if kinds <= _SCALARS else [self.cell(item) for item in items]


def _base(value: Any, kind: type) -> Any:
    """Return the plain type as which a value is sent; None if there is none."""
    if kind in PLAIN:
        return kind
    bases = (base for base in PLAIN if isinstance(value, base) and kind.__eq__ is base.__eq__)
    return None if _is_of_numpy(value) else next(bases, None)


def _is_of_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is None or not (type(value) is numpy.ndarray or isinstance(value, numpy.generic)):
        return False
    return _DTYPE.fullmatch(value.dtype.str) is not None


def read_values(nodes: list[Node], known: Sequence[Any] = ()) -> list[Any]:
    """Return the values of nodes, which may be forged; known ones get new contents where a node has some.

    Raises:
        Exception: Of any kind, for malformed nodes.
    """
    values, filled = list(known), []
    for number, node in enumerate(nodes):
        if node is None and number < len(known):
            continue
        name, *cells = node  # type: ignore[misc]
        if name in _MUTABLE:
            if number >= len(known):
                values.append(_MUTABLE[name]())
            elif type(values[number]) is not _MUTABLE[name]:
                raise NotPlainData("its message gives an argument another type")
            filled.append((values[number], cells))
        elif number >= len(known):
            values.append(_made(name, _items(cells, values)))
        else:
            values[number][...] = _made(name, cells)
    for value, cells in filled:
        _fill(value, _items(cells, values))
    return values


def _made(name: str, parts: list[Any]) -> Any:
    if name == _ITERATOR:
        return iter(parts)
    if name in (_ARRAY, _SCALAR):
        import numpy

        kind, text, *shape = parts
        if not _DTYPE.fullmatch(kind):
            raise NotPlainData("its message has no such type")
        made = numpy.frombuffer(text.encode("latin-1"), numpy.dtype(kind)).reshape(shape).copy()
        return made if name == _ARRAY else made[()]
    return _MAKERS[name](parts)


def _of_parts(make: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    return lambda parts: make(*parts)


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    **{kind.__name__: make for kind, make in _ITERATED.items()},
    **{kind.__name__: _of_parts(make) for kind, (_, make) in _PARTS.items()},
}


def _fill(value: Any, items: list[Any]) -> None:
    value.clear()
    if isinstance(value, dict):
        for key, item in zip(items[::2], items[1::2], strict=True):
            value[key] = item
    elif isinstance(value, set):
        value.update(items)
    else:
        value.extend(items)


def _items(cells: list[Cell], values: list[Any]) -> list[Any]:
    if list not in set(map(type, cells)):
        return cells
    return [value_of(cell, values) for cell in cells]


def value_of(cell: Cell, values: list[Any]) -> Any:
    """Return the value of a cell, given those of the nodes."""
    return values[cell[0]] if type(cell) is list else cell


def to_bytes(message: list[Any]) -> bytes:
    """Return a message as bytes; raise NotPlainData if it is too large."""
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(data) > MOST_BYTES:
        raise NotPlainData(f"it is larger than {MOST_BYTES >> 20} MB")
    return data


def of_bytes(data: bytes) -> Any:
    """Return a message without objects of JSON; raise any exception for malformed data."""
    return json.loads(data.decode("utf-8", "surrogatepass"), object_pairs_hook=_no_object)


def _no_object(pairs: Any) -> Any:
    raise NotPlainData("its message has no such type")
