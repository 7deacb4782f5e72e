"""numpy's arrays and scalars as plain data; numpy is optional, and objects in arrays are not sent."""

import re
import sys
from typing import Any

_PLAIN = re.compile(r"[<>|=][biufcSU]\d{1,6}")
_MOST_DIMENSIONS = 32


def is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and _is_plain(value)


def is_scalar(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic) and _is_plain(value)


def _is_plain(value: Any) -> bool:
    return _PLAIN.fullmatch(value.dtype.str) is not None


def pack(value: Any) -> bytes:
    shape = ",".join(map(str, value.shape))
    return b"%s %s %s" % (value.dtype.str.encode(), shape.encode(), value.tobytes())


def unpack(data: bytes) -> Any:
    """Raise ValueError or ImportError for what `pack` cannot have written."""
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


def assign(value: Any, new: Any) -> None:
    """Give an array new contents, in place."""
    if (value.dtype, value.shape) != (new.dtype, new.shape):
        raise ValueError("an argument was given another shape")
    value[...] = new
