"""Arrays of numpy, as they cross between processes."""

import re
import sys
from typing import Any

_MOST_DIMENSIONS = 32
_PLAIN = re.compile(r"[<>|=][biufcSU]\d{1,6}")
"""Types of numpy's arrays and scalars that are sent as plain data; objects in arrays are not."""


def is_array(value: object) -> bool:
    """Return whether a value is an array of plain numbers or texts.

    Args:
        value: Any value.

    Returns:
        True for it; False where numpy was never imported.
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and _is_plain(value)


def is_scalar(value: object) -> bool:
    """Return whether a value is a scalar of numpy.

    Args:
        value: Any value.

    Returns:
        True for it; False where numpy was never imported.
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic) and _is_plain(value)


def _is_plain(value: Any) -> bool:
    return _PLAIN.fullmatch(value.dtype.str) is not None


def pack_array(value: Any) -> bytes:
    """Write an array or a scalar.

    Args:
        value: The array.

    Returns:
        Its type, its shape and its memory block, each behind a space.
    """
    shape = ",".join(map(str, value.shape))
    return b"%s %s %s" % (value.dtype.str.encode(), shape.encode(), value.tobytes())


def unpack_array(data: bytes) -> Any:
    """Return the array that `pack_array` wrote.

    Args:
        data: Type, shape and memory block of the array.

    Returns:
        A new array of numpy.

    Raises:
        ValueError: For what `pack_array` cannot have written.
    """
    import numpy

    kind, shape, block = data.split(b" ", 2)
    lengths = [int(length) for length in shape.split(b",") if length]
    if (
        not _PLAIN.fullmatch(kind.decode())
        or len(lengths) > _MOST_DIMENSIONS
        or min(lengths, default=0) < 0
    ):
        raise ValueError("no such array")
    return numpy.frombuffer(block, numpy.dtype(kind.decode())).reshape(lengths).copy()


def assign_array(value: Any, new: Any) -> None:
    """Give an array new contents, in place.

    Args:
        value: The array that is changed.
        new: The contents.

    Raises:
        ValueError: When their type or shape is another.
    """
    if (value.dtype, value.shape) != (new.dtype, new.shape):
        raise ValueError("an argument was given another shape")
    value[...] = new
