"""What is sent arrives, or is refused; bytes of any other kind harm nobody."""

import math
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.verification.sandbox.decoder import MALFORMED, Decoder
from evaluation.verification.sandbox.encoder import MOST_DEPTH, Encoder, Refused, Table, deeply
from tests.conftest import ROOT


def _refuse(*_: object) -> Any:
    """Nothing is held: what is no data is refused."""
    raise Refused


def _write(value: Any) -> bytes:
    encoder = Encoder(Table(), _refuse)
    with deeply():
        encoder.write(value)
    return bytes(encoder.data)


def _read(data: bytes) -> Any:
    with deeply():
        return Decoder(data, Table(), _refuse).read()


_HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
_DATA = st.recursive(
    _HASHABLE | st.complex_numbers(allow_nan=False) | st.characters(categories=["Cs"]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(_HASHABLE, inner) | st.sets(_HASHABLE) | st.tuples(inner)
    ),
)


@settings(max_examples=40)
@given(_DATA)
def test_data_arrive_as_they_are(value: Any) -> None:
    arrived = _read(_write(value))
    assert arrived == value
    assert repr(arrived) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        np.array([["a", "bc"]]),
        np.zeros((0, 3), np.int8),
        np.array(5),
        np.array([1j, 2], np.complex64),
        np.arange(4)[::2],
        *(np.float32(0.1), np.int64(3), np.bool_(True), np.str_("a"), np.float64("inf")),
    ],
)
def test_values_of_numpy_arrive_as_they_are(value: Any) -> None:
    arrived = _read(_write(value))
    assert type(arrived) is type(value)
    assert (arrived.dtype, arrived.shape) == (value.dtype, value.shape)
    assert np.array_equal(arrived, value)
    if isinstance(arrived, np.ndarray):
        arrived[...] = arrived  # can be written to


def test_long_lists_of_numbers_are_one_block() -> None:
    for values in ([*range(1000)], [x / 7 for x in range(1000)]):
        assert len(_write(values)) < 9 * 1000
        assert _read(_write(values)) == values
    mixed = [*range(100), True, 2**80, 1.5]
    assert list(map(type, _read(_write(mixed)))) == list(map(type, mixed))


def test_special_numbers() -> None:
    assert math.isnan(_read(_write(math.nan)))
    assert math.copysign(1, _read(_write(-0.0))) == -1
    assert _read(_write(-(2**100_000))) == -(2**100_000)


def test_one_object_stays_one_and_may_hold_itself() -> None:
    inner: list[Any] = [1]
    outer = [inner, inner, {"again": inner}]
    outer.append(outer)
    arrived = _read(_write(outer))
    assert arrived[0] is arrived[1] is arrived[2]["again"]
    assert arrived[3] is arrived


def test_what_is_no_data_is_refused() -> None:
    for value in (object(), np.array([object()]), np.zeros(2, [("a", int)])):
        with pytest.raises(Refused):
            _write(value)


def test_what_is_too_deep_is_refused() -> None:
    """In a process of its own: once torch has compiled something in one, its calls are deep in C."""
    script = "from tests.verification.sandbox.test_encoder import check_depth; check_depth()"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=100)


def check_depth() -> None:
    deep: list[Any] = []
    for _ in range(MOST_DEPTH + 1):
        deep = [deep]
    with pytest.raises(Refused):
        _write(deep)
    with pytest.raises(Refused):
        _read(b"t\1\0\0\0" * 2 * MOST_DEPTH + b"N")


@given(st.binary())
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    _read_or_refuse(data)


@settings(max_examples=40)
@given(_DATA, st.randoms(use_true_random=False))
def test_damaged_bytes_are_refused(value: Any, generator: random.Random) -> None:
    data = bytearray(_write(value))
    data[generator.randrange(len(data))] = generator.randrange(256)
    _read_or_refuse(bytes(data[: generator.randrange(len(data)) + 1]))
    _read_or_refuse(bytes(data))


def _read_or_refuse(data: bytes) -> None:
    try:
        _read(data)
    except MALFORMED:
        return
